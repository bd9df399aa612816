//! No text that people read uses the phrases that docs/style.md rules out: help, documentation, messages, comments and
//! golden files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::mlxcel;

/// Refused phrases, in lower case, and what to write instead.
const REFUSED: &[(&str, &str)] = &[
    ("nothing to say", "ok"),
    ("nothing to do", "say that it is done already, or not needed"),
    ("has to say", "prints, reports"),
    ("have to say", "print, report"),
    ("comes no", "there is no"),
    ("come no", "there is no"),
    ("family answers to", "supports, matches"),
    ("that answers to", "supports, matches"),
    ("which answers to", "supports, matches"),
    ("be it", "begin a sentence of its own, or use a list"),
    ("whoever", "name the person or the program"),
    ("nobody", "no caller, no one"),
    ("somebody", "name the person or the program"),
    ("so many", "number of, at most N"),
    ("of which", "begin a sentence of its own"),
    ("stand", "is, follows, precedes"),
    ("stands", "is, follows, precedes"),
    ("stood", "was"),
    ("stand-in", "placeholder"),
    ("stand-ins", "placeholders"),
    ("told", "reported, printed, distinguished"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("as it should be", "expected"),
    ("as they should be", "expected"),
    ("piece of advice", "note"),
    ("pieces of advice", "notes"),
    ("no command of", "unknown command"),
    ("in the making", "decoded, in progress"),
    ("case counts", "case-sensitive"),
    ("to be had", "available"),
    ("anew", "again"),
    ("for ever", "forever"),
    ("remarked", "reported"),
    ("came of", "resulted from"),
    ("comes of", "results from"),
    ("to be said", "report"),
    ("misspelt", "misspelled"),
];

/// Phrases that may stay: the file, the phrase, and why.
const ALLOWED: &[(&str, &str, &str)] = &[];

#[test]
fn help_uses_plain_english() {
    let mut found = Vec::new();
    let mut commands = vec![String::new()];
    while let Some(command) = commands.pop() {
        let run = mlxcel(Path::new("."), format!("{command} --help").trim());
        assert_eq!(run.code, 0, "`{command} --help`: {}", run.stderr);
        search(&format!("mlxcel {command} --help"), &[(1, run.stdout.clone())], &mut found);
        let listed = run.stdout.lines().skip_while(|line| *line != "Commands:").skip(1);
        for line in listed.take_while(|line| !line.is_empty()) {
            // Continued descriptions are indented further than names.
            let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '));
            match name.and_then(|line| line.split(' ').next()) {
                Some("help") | None => {}
                Some(name) => commands.push(format!("{command} {name}").trim().to_owned()),
            }
        }
    }
    check(&found);
}

#[test]
fn documentation_uses_plain_english() {
    let pages = files(&["", ".ci", "docs", "src/diagnostic", "fuzz", "fixtures"], &["md", "yml", "run"]);
    assert!(pages.len() > 12, "only {} pages were found", pages.len());
    check(&search_all(&pages, |text| vec![(1, text.to_owned())]));
}

#[test]
fn messages_and_comments_use_plain_english() {
    let sources = files(&["src", "tests", "benches", "xtask", "fuzz", "build.rs"], &["rs"]);
    assert!(sources.len() > 100, "only {} sources were found", sources.len());
    check(&search_all(&sources, prose));
}

#[test]
fn golden_files_use_plain_english() {
    let golden = files(&["fixtures/refused", "fixtures/accepted"], &["txt"]);
    assert!(golden.len() > 50, "only {} files were found", golden.len());
    check(&search_all(&golden, |text| vec![(1, text.to_owned())]));
}

#[track_caller]
fn check(found: &[String]) {
    assert!(found.is_empty(), "{} phrases:\n{}", found.len(), found.join("\n"));
}

/// The files with one of these extensions (or names) in the directories, relative to the repository. The first
/// directory may be the repository itself, whose subdirectories are not searched.
fn files(directories: &[&str], extensions: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pending: Vec<(PathBuf, bool)> =
        directories.iter().map(|directory| (PathBuf::from(directory), !directory.is_empty())).collect();
    let mut found = Vec::new();
    while let Some((path, descend)) = pending.pop() {
        if !root.join(&path).is_dir() {
            found.push(path);
            continue;
        }
        for entry in fs::read_dir(root.join(&path)).expect("a directory can be read") {
            let entry = entry.expect("an entry");
            let child = path.join(entry.file_name());
            let is_directory = entry.file_type().expect("a type").is_dir();
            let extension = child.extension().or(child.file_name()).and_then(|name| name.to_str());
            if is_directory && descend && !child.ends_with("target") {
                pending.push((child, true));
            } else if !is_directory && extension.is_some_and(|extension| extensions.contains(&extension)) {
                found.push(child);
            }
        }
    }
    found.sort();
    found
}

/// Searches files; `parts` splits one into texts and the line where each begins.
fn search_all(paths: &[PathBuf], parts: impl Fn(&str) -> Vec<(usize, String)>) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for path in paths.iter().filter(|path| !path.ends_with("tests/it/english.rs")) {
        let text = fs::read_to_string(root.join(path)).expect("a file can be read");
        search(&path.to_string_lossy(), &parts(&text), &mut found);
    }
    found
}

/// Adds a line to `found` for each refused phrase. Line breaks count as spaces.
fn search(name: &str, parts: &[(usize, String)], found: &mut Vec<String>) {
    for (line, text) in parts {
        let plain = text.to_lowercase().replace('\n', " ");
        for (phrase, instead) in REFUSED {
            let allowed = ALLOWED.iter().any(|(file, allowed, _)| name.ends_with(file) && allowed == phrase);
            for at in occurrences(&plain, phrase).filter(|_| !allowed) {
                let line = line
                    + text.char_indices().take_while(|(i, _)| *i < at).filter(|(_, c)| *c == '\n').count();
                found.push(format!("{name}:{line}: `{phrase}`; write: {instead}"));
            }
        }
        if text.starts_with("Of ") || text.contains(". Of ") {
            found.push(format!("{name}:{line}: `Of …`; begin the sentence with its subject"));
        }
        if matches!(plain.trim(), "which." | "what." | "how." | "who." | "where." | "when.") {
            found
                .push(format!("{name}:{line}: `{}`; say what it holds, its unit and its range", text.trim()));
        }
    }
}

/// Where a phrase occurs as whole words. A hyphen or an underscore continues a word; `{name}` is a variable.
fn occurrences<'t>(text: &'t str, phrase: &'t str) -> impl Iterator<Item = usize> + 't {
    let continues = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(phrase).map(|(at, _)| at).filter(move |&at| {
        !text[..at].ends_with(|c: char| continues(c) || c == '{')
            && !text[at + phrase.len()..].starts_with(continues)
    })
}

/// The comments and string literals of Rust code, each with its line. Adjacent comment lines are one text.
fn prose(code: &str) -> Vec<(usize, String)> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    let mut comment_ends_before = 0;
    let (mut rest, mut line) = (code, 1);
    while let Some(first) = rest.chars().next() {
        let before = rest;
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            let text = rest[..end].trim_start_matches(['/', '!']).trim();
            match parts.last_mut() {
                Some((_, comment)) if comment_ends_before == line && !text.is_empty() => {
                    comment.push('\n');
                    comment.push_str(text);
                }
                _ => parts.push((line, text.to_owned())),
            }
            comment_ends_before = line + 1;
            rest = &rest[end..];
        } else if let Some(end) = string_end(rest, first) {
            parts.push((line, continued(&rest[..end])));
            rest = &rest[end..];
        } else if let Some(quoted) = rest.strip_prefix('\'') {
            // A character, or a lifetime.
            let mut characters = quoted.chars();
            let character = match (characters.next(), characters.next()) {
                (Some('\\'), Some(_)) => 2 + characters.position(|c| c == '\'').map_or(0, |at| at + 1),
                (Some(c), Some('\'')) => c.len_utf8() + 1,
                _ => 0,
            };
            rest = &quoted[character..];
        } else {
            let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            rest = &rest[name.max(first.len_utf8())..];
        }
        line += before[..before.len() - rest.len()].matches('\n').count();
    }
    parts
}

/// The length of the string literal that `rest` begins with; `first` is its first character.
fn string_end(rest: &str, first: char) -> Option<usize> {
    if !matches!(first, '"' | 'r' | 'b' | 'c') {
        return None;
    }
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let hashes = rest[prefix.len()..].bytes().take_while(|byte| *byte == b'#').count();
    let body = prefix.len() + hashes + 1;
    if prefix.ends_with('r') {
        let close = format!("\"{}", "#".repeat(hashes));
        return Some(rest[body..].find(&close).map_or(rest.len(), |at| body + at + close.len()));
    }
    if hashes > 0 {
        return None;
    }
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(body) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

/// A string literal with its continued lines joined as the compiler joins them; the number of lines stays.
fn continued(literal: &str) -> String {
    literal.lines().map(|line| line.trim().trim_end_matches('\\').trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn comments_and_strings_are_found_and_code_is_not() {
    let code = "//! One\n//! two.\nfn nobody<'a>(c: char) { c == '\"'; say(\"it is \\\n    told\"); } // r#\"x\"#\nr#\"be \"it\"#";
    let parts = prose(code);
    let texts: Vec<(usize, &str)> = parts.iter().map(|(line, text)| (*line, text.as_str())).collect();
    assert_eq!(texts, [(1, "One\ntwo."), (3, "\"it is\ntold\""), (4, "r#\"x\"#"), (5, "r#\"be \"it\"#")]);
}

#[test]
fn a_phrase_is_found_across_lines_and_only_as_whole_words() {
    let mut found = Vec::new();
    let text = "Nobody knows.\nNobody_else, unmended; a\nis told.";
    search("page.md", &[(7, text.to_owned())], &mut found);
    assert_eq!(
        found,
        [
            "page.md:7: `nobody`; write: no caller, no one",
            "page.md:9: `told`; write: reported, printed, distinguished"
        ]
    );
}
