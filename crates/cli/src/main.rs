//! The `rtscope` binary; everything is in the library beside it, where tests reach it.

fn main() -> std::process::ExitCode {
    cli::main()
}
