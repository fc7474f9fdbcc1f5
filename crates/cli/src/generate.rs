//! The man page and the completions, generated from the flags.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;
use event::{Error, ErrorKind};

use crate::completions;
use crate::exit::{Outcome, stdout_error};
use crate::flags::{Arguments, Generated};

/// Writes it to stdout; a man page of one verb alone where `of` names it.
pub fn run(kind: Generated, of: Option<&str>) -> event::Result<Outcome> {
    let text = match of {
        Some(verb) => page_of(verb)?,
        None => generate(kind)?,
    };
    std::io::stdout()
        .lock()
        .write_all(&text)
        .map_err(stdout_error)?;
    Ok(Outcome::Fine)
}

/// The man page of one verb: what its long help says.
fn page_of(verb: &str) -> event::Result<Vec<u8>> {
    let mut command = Arguments::command();
    command.build();
    let found = command.find_subcommand(verb);
    let found = found.filter(|found| !found.is_hide_set()).ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, "there is no such verb")
            .found(verb)
            .fix("rtscope --help names them all")
    })?;
    let mut text = Vec::new();
    clap_mangen::Man::new(found.clone())
        .render(&mut text)
        .map_err(stdout_error)?;
    Ok(text)
}

fn generate(kind: Generated) -> event::Result<Vec<u8>> {
    let mut command = Arguments::command();
    let shell = match kind {
        Generated::Man => {
            let mut text = Vec::new();
            man(&mut command, &mut text).map_err(stdout_error)?;
            return Ok(text);
        }
        Generated::Bash => Shell::Bash,
        Generated::Zsh => Shell::Zsh,
        Generated::Fish => Shell::Fish,
    };
    Ok(completions::text(shell, &mut command).into_bytes())
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
    fn every_verb_has_a_page_of_its_own_and_nothing_else_has() {
        let mut command = Arguments::command();
        command.build();
        let verbs = command.get_subcommands();
        for verb in verbs.filter(|verb| !verb.is_hide_set()) {
            let page = page_of(verb.get_name()).expect("a page");
            let page = String::from_utf8(page).expect("utf-8");
            let title = format!(".TH rtscope-{} 1", verb.get_name());
            assert!(page.contains(&title), "{title}: {}", &page[..100]);
        }
        let error = page_of("nothing").expect_err("no verb");
        assert!(error.to_string().contains("no such verb"), "{error}");
    }

    #[test]
    fn each_generated_text_knows_every_verb() {
        let check = |kind: Generated, opening: &str| {
            let text = String::from_utf8(generate(kind).expect("generated")).expect("utf-8");
            assert!(
                text.contains(opening),
                "{kind:?}: {}",
                &text[..200.min(text.len())]
            );
            assert!(text.to_lowercase().contains("doctor"), "{kind:?}");
        };
        check(Generated::Man, ".TH rtscope");
        check(Generated::Bash, "_rtscope()");
        check(Generated::Zsh, "#compdef rtscope");
        check(Generated::Fish, "complete -c rtscope");
    }
}
