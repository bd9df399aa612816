//! Rendering, and where templates are found.

use super::*;
use serde_json::json;

fn compile(source: &str) -> Result<ChatTemplate, Error> {
    let special = [("bos_token", "<s>".to_owned()), ("eos_token", "</s>".to_owned())];
    ChatTemplate::compile(PathBuf::from("chat_template.jinja"), source, special.into_iter())
}

fn talk() -> Vec<Message> {
    vec![
        message("system", "Be brief."),
        message("user", "  Hi! "),
        message("assistant", "Hello."),
        message("user", "Bye <b>"),
    ]
}

#[track_caller]
fn check(source: &str, expected: &str) {
    let prompt = compile(source).and_then(|template| template.render(&talk(), &TemplateInputs::default()));
    assert_eq!(prompt.map_err(|error| error.to_string()).as_deref(), Ok(expected));
}

#[track_caller]
fn check_refused(source: &str, expected: &str) {
    let error = compile(source)
        .and_then(|template| template.render(&talk(), &TemplateInputs::default()))
        .unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_chatml_template_renders_as_in_transformers() {
    check(
        "{% for message in messages %}\n    {{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}\n\
         {%- endfor %}\n{% if add_generation_prompt %}\n    {{- '<|im_start|>assistant\n' }}\n{%- endif %}\n",
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n  Hi! <|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n\
         <|im_start|>user\nBye <b><|im_end|>\n<|im_start|>assistant\n",
    );
}

#[test]
fn block_tags_remove_their_line_and_python_methods_work() {
    check(
        "{{ bos_token }}\n{% for m in messages if m.role != 'system' %}\n  {% if loop.index0 == 1 %}{% continue %}{% endif %}\n\
         [{{ m.content.strip().upper() }}]\n{% endfor %}\n{{ messages[::-1][0].content.split(' ')[1] }}{{ eos_token }}",
        "<s>\n[HI!]\n[BYE <B>]\n<b></s>",
    );
}

#[test]
fn generation_tags_have_no_effect() {
    check(
        "{% for m in messages %}\n{%- if m.role == 'assistant' %}\n{% generation %}\n{{ m.content }}\n{%- endgeneration -%}\n{% endif %}\n{%- endfor %}!",
        "Hello.!",
    );
}

#[test]
fn undefined_variables_are_false_and_additional_ones_are_passed() {
    check(
        "{% if tools %}t{% endif %}{% if tools is none %}n{% endif %}{% if enable_thinking is defined %}d{% endif %}",
        "n",
    );
    let mut inputs = TemplateInputs { tools: Some(json!([{"name": "f"}])), ..TemplateInputs::default() };
    inputs.variables.insert("enable_thinking".to_owned(), false.into());
    let template = compile("{{ tools | tojson }} {{ enable_thinking }}").unwrap();
    assert_eq!(template.render(&talk(), &inputs).unwrap(), r#"[{"name": "f"}] False"#);
}

#[test]
fn text_parts_are_joined_unless_the_template_iterates_over_them() {
    let mut talk = vec![message("user", "")];
    talk[0].insert(
        "content".to_owned(),
        json!([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]),
    );
    let render = |source| compile(source).unwrap().render(&talk, &TemplateInputs::default()).unwrap();
    assert_eq!(render("{% for m in messages %}{{ m.content }}{% endfor %}"), "ab");
    let wanting = "{% for m in messages %}{%- for part in m['content'] if part.type == 'text' -%}({{ part.text }}){% endfor %}{% endfor %}";
    assert_eq!(render(wanting), "(a)(b)");
}

#[test]
fn template_errors_have_a_line() {
    check_refused(
        "{% if messages[0].role == 'system' %}\n{{ raise_exception('no system role') }}\n{% endif %}",
        "chat template `chat_template.jinja`, line 2: no system role",
    );
    let unclosed = compile("a\n{% if x %}\nb").unwrap_err().to_string();
    assert!(unclosed.starts_with("chat template `chat_template.jinja`, line 3: "), "{unclosed}");
    let unknown = compile("\n{{ messages | frobnicate }}")
        .and_then(|template| template.render(&talk(), &TemplateInputs::default()))
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("line 2") && unknown.contains("frobnicate"), "{unknown}");
}

#[test]
fn the_number_of_steps_is_limited() {
    check_refused(
        "{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}{% endfor %}{% endfor %}{% endfor %}",
        "chat template `chat_template.jinja`, line 1: takes too many steps",
    );
}

/// A model directory with these files, its template rendered for one message.
fn find(files: &[(&str, String)], flag: Option<&str>) -> Result<Option<String>, Error> {
    let dir = tempfile::tempdir().unwrap();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/models/tiny-tales/base/tokenizer.json");
    std::fs::copy(fixture, dir.path().join("tokenizer.json")).unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let tokenizer = Tokenizer::open(dir.path())?;
    let flag = flag.map(|name| dir.path().join(name));
    let template = ChatTemplate::find(dir.path(), &tokenizer, flag.as_deref())?;
    template.map(|template| template.render(&[message("user", "x")], &TemplateInputs::default())).transpose()
}

#[test]
fn template_sources_have_an_order() {
    let mut files = vec![
        ("chat_template.json", json!({"chat_template": "last"}).to_string()),
        (
            "tokenizer_config.json",
            json!({"chat_template": "config {{ eos_token }}", "eos_token": {"content": "E"}}).to_string(),
        ),
        ("chat_template.jinja", "jinja".to_owned()),
        ("mine.jinja", "flag".to_owned()),
    ];
    assert_eq!(find(&files, Some("mine.jinja")).unwrap().as_deref(), Some("flag"));
    assert_eq!(find(&files, None).unwrap().as_deref(), Some("jinja"));
    files.remove(2);
    assert_eq!(find(&files, None).unwrap().as_deref(), Some("config E"));
    files.remove(1);
    assert_eq!(find(&files, None).unwrap().as_deref(), Some("last"));
    files.remove(0);
    assert_eq!(find(&files, None).unwrap(), None);
}

#[test]
fn the_default_of_several_templates_is_used() {
    let named = json!({"chat_template": [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]});
    assert_eq!(
        find(&[("tokenizer_config.json", named.to_string())], None).unwrap().as_deref(),
        Some("plain")
    );
    let wrong = json!({"chat_template": 3}).to_string();
    let error = find(&[("tokenizer_config.json", wrong)], None).unwrap_err().to_string();
    assert!(error.contains("tokenizer_config.json") && error.contains("chat_template"), "{error}");
}

#[test]
fn a_missing_template_file_is_named() {
    let error = find(&[], Some("none.jinja")).unwrap_err().to_string();
    assert!(error.ends_with("none.jinja`: does not exist"), "{error}");
}

#[test]
fn loops_over_content_are_found() {
    for source in [
        "{%- for part in message['content'] -%}",
        "{% for c in messages[0][\"content\"] if c.type == 'text' %}",
        "{% for c in m.content %}",
        "{% for c in content %}",
    ] {
        assert!(iterates_content(source), "{source}");
    }
    for source in
        ["{% for m in messages %}{{ m.content }}", "{% if 'x' in m.content %}", "{% for c in contents %}"]
    {
        assert!(!iterates_content(source), "{source}");
    }
}
