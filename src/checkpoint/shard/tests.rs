use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::time::Duration;

use super::super::ReadErrorKind;
use super::super::testing::{Dir, bytes, raw};
use super::Shard;

#[track_caller]
fn refused(contents: impl AsRef<[u8]>, reason: &str) {
    let dir = Dir::new().with("d.safetensors", contents);
    let error = Shard::open(&dir.join("d.safetensors")).unwrap_err();
    assert_eq!((error.reason.as_str(), error.kind), (reason, ReadErrorKind::Unreadable));
    assert!(error.help.is_some(), "no help: {error}");
}

#[test]
fn a_shard_is_read_by_position() {
    let dir =
        Dir::new().with("a.safetensors", raw(r#"{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#, 0));
    let path = dir.join("a.safetensors");
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"abcd").unwrap();
    let (shard, tensors) = Shard::open(&path).unwrap();
    let mut two = [0; 2];
    shard.read_at(&mut two, tensors[0].range.start + 1).unwrap();
    assert_eq!(&two, b"bc");
    assert_eq!(shard.data_start, tensors[0].range.start);
    let past = shard.read_at(&mut two, tensors[0].range.end - 1).unwrap_err();
    assert_eq!(past.kind(), std::io::ErrorKind::UnexpectedEof);
}

#[test]
fn the_format_is_in_the_metadata() {
    let format = |header: &str| {
        let dir = Dir::new().with("a.safetensors", raw(header, 0));
        Shard::open(&dir.join("a.safetensors")).unwrap().0.format().map(str::to_owned)
    };
    assert_eq!(format(r#"{"__metadata__":{"a":"b","format":"mlx"}}"#).as_deref(), Some("mlx"));
    assert_eq!(format(r#"{"__metadata__":null}"#), None);
}

#[test]
fn a_file_that_changes_is_noticed() {
    let dir = Dir::new().with("a.safetensors", bytes(&["x"]));
    let path = dir.join("a.safetensors");
    let open = || Shard::open(&path).unwrap().0;
    let shard = open();
    assert!(shard.unchanged().unwrap());

    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"!").unwrap();
    assert!(!shard.unchanged().unwrap(), "grown");

    let shard = open();
    let later = fs::File::options().write(true).open(&path).unwrap();
    later.set_modified(std::time::SystemTime::now() + Duration::from_secs(9)).unwrap();
    assert!(!shard.unchanged().unwrap(), "written again");

    let shard = open();
    // The system's clock for files has steps.
    std::thread::sleep(Duration::from_millis(20));
    let file = fs::File::options().write(true).open(&path).unwrap();
    let before = file.metadata().unwrap();
    (&file).write_all(&fs::read(&path).unwrap()).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    assert_eq!(file.metadata().unwrap().modified().unwrap(), before.modified().unwrap());
    assert!(!shard.unchanged().unwrap(), "written in place, with its old time");

    let shard = open();
    fs::copy(&path, dir.join("b")).unwrap();
    fs::rename(dir.join("b"), &path).unwrap();
    assert!(!shard.unchanged().unwrap(), "another file under the name");

    let shard = open();
    fs::remove_file(&path).unwrap();
    assert!(!shard.unchanged().unwrap(), "no file under the name");
}

#[test]
fn other_formats_are_recognised() {
    let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n";
    refused(lfs, "a Git LFS pointer, not the weights themselves");
    refused([&b"GGUF\x03\0\0\0"[..], &[0; 64]].concat(), "a GGUF file, which is not safetensors");
    let zip = "a zip archive (PyTorch `.bin` or `.pt`, or NumPy `.npz`), not safetensors";
    refused([&b"PK\x03\x04"[..], &[0; 64]].concat(), zip);
    refused("<!DOCTYPE html><html><body>Not found</body></html>", "an HTML page, not safetensors");
    refused("\n  <HTML>\n<body>Not found</body></HTML>", "an HTML page, not safetensors");
    refused("<?xml version=\"1.0\"?><Error/>", "an XML text, not safetensors");
    refused("{\"error\": \"Repository not found\"}", "a JSON text, not safetensors");
    refused("{}", "a JSON text, not safetensors");
    refused(
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.",
        "a Python pickle (an old PyTorch file), not safetensors",
    );
    refused(b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "a gzip archive, not safetensors");
    refused("# gains\nversion: 1\noperations: []\n", "a YAML text (a surgery file?), not safetensors");
    refused("Notes on the weights: \u{e9}t\u{e9}", "a text file, not safetensors");
    refused([&b"\x93NUMPY\x01\0"[..], &[0; 64]].concat(), "a NumPy array, not safetensors");
    refused([&b"\x89PNG\r\n\x1a\n"[..], &[0; 64]].concat(), "an image, not safetensors");
}

#[test]
fn a_header_whose_length_spells_another_format_is_read() {
    // 640 bytes are 80 02, as a pickle begins; 35,615 bytes are 1f 8b, as a gzip archive does.
    for length in [640, 35_615] {
        let header = format!("{:length$}", "{}");
        let dir = Dir::new().with("a.safetensors", raw(&header, 0));
        assert!(Shard::open(&dir.join("a.safetensors")).is_ok());
    }
}

#[test]
fn lengths_are_distrusted() {
    refused("", "empty (0 bytes)");
    refused("abc", "3 bytes: too short for a safetensors header");
    refused(0_u64.to_le_bytes(), "the header is not a JSON object");
    let header = |length: u64| [&length.to_le_bytes()[..], b"{}"].concat();
    refused(header(3), "a header of 3 bytes, but only 2 follow (interrupted download?)");
    refused(header(100_000_000), "a header of 100000000 bytes: the format allows less than 100000000");
    refused(
        header(u64::MAX),
        "a header of 18446744073709551615 bytes: the format allows less than 100000000",
    );
    refused([&2_u64.to_le_bytes()[..], b"[]"].concat(), "the header is not a JSON object");
    refused([&3_u64.to_le_bytes()[..], b"{\xff}"].concat(), "the header is not UTF-8 text");
}

#[test]
fn a_sparse_file_of_terabytes_opens_at_once() {
    let size = 1_u64 << 41;
    let header = format!(
        r#"{{"x":{{"dtype":"U8","shape":[1024,2147483647],"data_offsets":[0,{}]}}}}"#,
        2_147_483_647_u64 * 1024
    );
    let dir = Dir::new().with("a.safetensors", raw(&header, 0));
    let path = dir.join("a.safetensors");
    fs::File::options().write(true).open(&path).unwrap().set_len(size).unwrap();
    let (shard, _) = Shard::open(&path).unwrap();
    assert_eq!(shard.trailing, size - shard.data_start - 2_147_483_647 * 1024);
}

#[test]
fn only_regular_files_are_opened() {
    // Opening the FIFO would wait for a writer forever.
    let open = |path: &std::path::Path| Shard::open(path).unwrap_err();
    let dir = Dir::new();
    assert_eq!(open(dir.path()).reason, "a directory, not a file");
    let zero = open("/dev/zero".as_ref());
    assert_eq!(zero.reason, "not a regular file");
    assert_eq!(zero.help.as_deref(), Some("pipes and devices are not supported; write a file first"));
    let fifo = dir.join("fifo.safetensors");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert_eq!(open(&fifo).reason, "not a regular file");
}

#[test]
fn links_keep_their_name_and_a_dangling_one_says_so() {
    let dir = Dir::new().with("blob", bytes(&["x"]));
    let link = dir.join("model.safetensors");
    symlink("blob", &link).unwrap();
    assert_eq!(Shard::open(&link).unwrap().0.path, link);

    fs::remove_file(dir.join("blob")).unwrap();
    let error = Shard::open(&link).unwrap_err();
    assert_eq!(
        (error.kind, error.reason.as_str()),
        (ReadErrorKind::NotFound, "a link to `blob`, which does not exist")
    );
}

#[test]
fn a_missing_file_is_not_found_and_the_shell_is_not_asked() {
    let missing = |path: &str| Shard::open(path.as_ref()).unwrap_err();
    let error = missing("no/such/file.safetensors");
    assert_eq!((error.kind, error.help), (ReadErrorKind::NotFound, None));
    assert_eq!(error.reason, "no such file or directory");
    for path in ["~/d.safetensors", "/x/$HOME/d.safetensors"] {
        assert_eq!(
            missing(path).help.as_deref(),
            Some("`~` and `$VAR` are not expanded; write the whole path")
        );
    }
}
