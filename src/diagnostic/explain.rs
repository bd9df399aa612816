//! What each code means, at length: `mlxcel surgery explain CODE`, and all of them as `docs/diagnostics.md`.

use super::{Code, Severity};

/// One section per code, headed by its name.
const PAGES: &str = include_str!("explain.md");

/// A code's page, in Markdown, headed by its full name.
#[must_use]
pub fn explain(code: Code) -> String {
    format!("# {code}\n\n{}: {}\n\n{}\n", code.severity().word(), code.summary(), body(code))
}

/// All pages as one document.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Diagnostics\n\nThis page explains every diagnostic that mlxcel reports about a surgery file, its model and its donors; \
         it is generated from `src/diagnostic/explain.md`. An error means that there is no plan and nothing is loaded. A warning is probably a mistake; `--deny warnings` of \
         `surgery plan`, `surgery check` and `surgery export` makes it an error. A note is worth knowing (its \
         `severity` in JSON is `advice`). `mlxcel surgery explain CODE` shows one of these pages.\n",
    );
    for (severity, heading) in
        [(Severity::Error, "Errors"), (Severity::Warning, "Warnings"), (Severity::Advice, "Notes")]
    {
        page.push_str("\n## ");
        page.push_str(heading);
        page.push('\n');
        for code in Code::ALL.iter().filter(|code| code.severity() == severity) {
            page.extend(["\n### ", code.name(), "\n\n*", code.summary(), "*\n\n", body(*code), "\n"]);
        }
    }
    page
}

/// The text under a code's heading.
fn body(code: Code) -> &'static str {
    let mut sections = PAGES.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    sections.find(|(name, _)| *name == code.name()).map_or("", |(_, body)| body.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_page_and_every_page_its_code() {
        let headings: Vec<&str> = PAGES.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(headings, names);
        for code in Code::ALL {
            assert!(body(*code).len() > 60, "the page of `{code}` is too short");
        }
    }
}
