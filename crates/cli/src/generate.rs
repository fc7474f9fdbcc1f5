//! The man page and the completions, generated from the flags.

use std::io::Write;

use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;

use crate::exit::{Outcome, stdout_error};
use crate::flags::Arguments;

/// What `--generate` can write to stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The man page, in roff.
    Man,
    /// Completions for bash.
    Bash,
    /// Completions for zsh.
    Zsh,
    /// Completions for fish.
    Fish,
}

/// Writes it to stdout.
pub fn run(kind: Kind) -> event::Result<Outcome> {
    std::io::stdout()
        .lock()
        .write_all(&generate(kind)?)
        .map_err(stdout_error)?;
    Ok(Outcome::Fine)
}

fn generate(kind: Kind) -> event::Result<Vec<u8>> {
    let mut command = Arguments::command();
    let mut text = Vec::new();
    let shell = match kind {
        Kind::Man => {
            man(&mut command, &mut text).map_err(stdout_error)?;
            return Ok(text);
        }
        Kind::Bash => Shell::Bash,
        Kind::Zsh => Shell::Zsh,
        Kind::Fish => Shell::Fish,
    };
    clap_complete::generate(shell, &mut command, "rtscope", &mut text);
    Ok(text)
}

/// One page: the program, then a section for each verb.
fn man(command: &mut clap::Command, text: &mut Vec<u8>) -> std::io::Result<()> {
    command.build();
    clap_mangen::Man::new(command.clone()).render(text)?;
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let page = clap_mangen::Man::new(verb.clone());
        writeln!(text, ".SH \"RTSCOPE {}\"", verb.get_name().to_uppercase())?;
        page.render_description_section(text)?;
        page.render_options_section(text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_generated_text_knows_every_verb() {
        let check = |kind: Kind, opening: &str| {
            let text = String::from_utf8(generate(kind).expect("generated")).expect("utf-8");
            assert!(
                text.contains(opening),
                "{kind:?}: {}",
                &text[..200.min(text.len())]
            );
            assert!(text.to_lowercase().contains("doctor"), "{kind:?}");
        };
        check(Kind::Man, ".TH rtscope");
        check(Kind::Bash, "_rtscope()");
        check(Kind::Zsh, "#compdef rtscope");
        check(Kind::Fish, "complete -c rtscope");
    }
}
