//! The crate's face: planning and executing with nothing but what it exports to everyone.

use std::error::Error;
use std::path::{Path, PathBuf};

use mlxcel::{Checkpoint, Executor, Plan, Report, Stop, SurgeryFile, export, plan};

const YAML: &str = "version: 1\noperations:\n- {op: scale, pattern: '*.mlp.down_proj.weight', factor: 0.5}\n";

fn base() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/base")
}

/// Every kind of error goes up by `?`.
fn planned(yaml: &str, model: &Path) -> Result<Plan, Box<dyn Error>> {
    let file = SurgeryFile::parse(Path::new("surgery.yaml"), yaml.as_bytes());
    Ok(plan(&file, Checkpoint::open(model)?)?)
}

fn executed(plan: &Plan) -> Result<Report, Box<dyn Error>> {
    let mut executor = Executor::new(plan)?;
    for program in plan.programs() {
        executor.run(program, &mut vec![0; usize::try_from(program.result_bytes())?])?;
    }
    Ok(executor.finish()?)
}

#[test]
fn a_plan_is_executed_and_exported_with_the_same_result() -> Result<(), Box<dyn Error>> {
    let plan = planned(YAML, &base())?;
    let report = executed(&plan)?;
    assert_eq!(report.tensors, plan.summary().tensors_edited as u64);
    let folder = tempfile::tempdir()?;
    let exported = export(&plan, &folder.path().join("half"), &mut |_done, _total| {}, &Stop::new())?;
    assert_eq!(exported.report.weights_sha256, report.weights_sha256);
    assert!(folder.path().join("half/config.json").exists());
    Ok(())
}

#[test]
fn errors_are_standard_errors_that_name_what_is_wrong() {
    let refused = planned(&YAML.replace("down_proj", "dwon_proj"), &base()).expect_err("nothing matches");
    assert!(refused.to_string().starts_with("error["), "{refused}");
    assert!(refused.to_string().contains("]: `*.mlp.dwon_proj.weight` matches no tensor"), "{refused}");
    let unopened = planned(YAML, Path::new("no/such/model")).expect_err("there is no model");
    assert!(unopened.to_string().starts_with("`no/such/model`: "), "{unopened}");
    let plan = planned(YAML, &base()).expect("a plan");
    let unwritten = export(&plan, &base(), &mut |_done, _total| {}, &Stop::new()).expect_err("it exists");
    let unwritten: Box<dyn Error> = unwritten.into();
    assert!(unwritten.to_string().contains("already exists"), "{unwritten}");
}
