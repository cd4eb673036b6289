// SPDX-License-Identifier: Apache-2.0
#include <millrace/chat/chat_template.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace millrace::chat {
namespace {

using testing::HasSubstr;

std::string render(std::string_view source, std::string_view variables = "{}") {
  value_pool pool;
  return chat_template::parse(source, "t").render(parse_json(variables, pool)).text;
}

/// The message of the error that parsing or rendering ends with.
std::string problem(std::string_view source, std::string_view variables = "{}",
                    const render_limits& limits = {}) {
  value_pool pool;
  try {
    return "rendered: " +
           chat_template::parse(source, "t").render(parse_json(variables, pool), limits).text;
  } catch (const template_error& e) {
    return e.what();
  }
}

struct example {
  const char* source;
  const char* text;
};
void expect_all(std::initializer_list<example> examples, std::string_view variables = "{}") {
  for (const auto& [source, text] : examples) EXPECT_EQ(render(source, variables), text) << source;
}

// Written from the published format of Llama 3.
constexpr const char* llama3 =
    "{% for m in messages %}"
    "{% set turn = '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | "
    "trim + '<|eot_id|>' %}"
    "{% if loop.first %}{% set turn = bos_token + turn %}{% endif %}{{ turn }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% "
    "endif %}";

TEST(ChatTemplate, RendersTheFormatOfLlama3) {
  value_pool pool;
  const conversation from{parse_json("[{\"role\": \"user\", \"content\": \" Hi \"}, {\"role\": "
                                     "\"assistant\", \"content\": \"Yo\"}]",
                                     pool),
                          {},
                          {},
                          true};
  const dict_entry more[] = {{value("bos_token"), value("<|begin_of_text|>")}};
  EXPECT_EQ(chat_template::parse(llama3, "llama3").render(make_variables(from, more, pool)).text,
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatTemplate, CopiesTheReasoningToTheFieldsThatTemplatesRead) {
  value_pool pool;
  const conversation from{
      parse_json("[{\"role\": \"a\", \"reasoning\": \"r\"}, {\"role\": \"b\"}]", pool)};
  const auto variables = make_variables(from, {}, pool);
  EXPECT_EQ(chat_template::parse(
                "{% for m in messages %}{{ m.reasoning_content }}|{{ m.thinking }};{% endfor %}"
                "{{ tools is none }}",
                "t")
                .render(variables)
                .text,
            "r|r;|;True");
}

TEST(ChatTemplate, RecordsTheBytesOfGenerationBlocks) {
  value_pool pool;
  const auto parsed = chat_template::parse(
      "{% for m in messages %}\u00e9{% generation %}{{ m }}!{% endgeneration %}\n\n{% endfor %}",
      "t");
  EXPECT_TRUE(parsed.has_generation_blocks());
  EXPECT_FALSE(chat_template::parse("x", "t").has_generation_blocks());
  const rendered out = parsed.render(parse_json("{\"messages\": [\"\u00e4\", \"bc\"]}", pool));
  EXPECT_EQ(out.text,
            "\u00e9\u00e4!\n\u00e9"
            "bc!\n");
  EXPECT_EQ(out.generation, (std::vector<byte_span>{{2, 5}, {8, 11}}));
}

TEST(ChatTemplate, TreatsWhiteSpaceAsTransformersDoes) {
  expect_all({
      {"a\n  {% if true %}\nb\n  {% endif %}\nc\n", "a\nb\nc"},
      {"a \n {{- 1 -}} \n b", "a1b"},
      {"a\n  {%+ if true +%}\nb{% endif %}", "a\n  \nb"},
      {"x {% set a = 1 %} y", "x  y"},
      {"{# c #}\nx\n  {# c #}\ny", "x\ny"},
      {"{% raw %}{{ x }}{% endraw %}\n.", "{{ x }}."},
      {"a\r\nb\rc\n\n", "a\nb\nc\n"},
      {"{{ '\\n\\x41\\u00e9\\'' }}", "\nA\u00e9'"},
  });
}

TEST(ChatTemplate, KeepsAssignmentsInsideOfLoops) {
  expect_all(
      {
          {"{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + i %}{{ x }};{% endfor %}{{ x "
           "}}",
           "12;13;1"},
          {"{% set ns = namespace(x=0) %}{% for i in range(4) %}{% set ns.x = ns.x + i %}{% endfor "
           "%}{{ ns.x }}",
           "6"},
          {"{% if true %}{% set x = 5 %}{% endif %}{{ x }}", "5"},
          {"{% for i in [1, 2] %}{% if i == 1 %}{% set y = 'set' %}{% endif %}[{{ y }}]{% endfor "
           "%}",
           "[set][]"},
          {"{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}", "2in"},
          {"{% set x %}a{{ x }}{% endset %}{{ x }}", "a"},
          {"{% macro m(a, b='-', c=a) %}{{ a }}{{ b }}{{ c }}{{ x }}{% endmacro %}{{ m(1) }} {{ "
           "m(2, c=3) }}",
           "1-1in 2-3in"},
          {"{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
           "3210"},
      },
      "{\"x\": \"in\"}");
}

TEST(ChatTemplate, LoopsAsJinjaDoes) {
  expect_all({
      {"{% for k, v in {'a': 1, 'b': 2}.items() %}{{ loop.index }}{{ k }}{{ v }}{{ '' if loop.last "
       "else ',' }}{% endfor %}",
       "1a1,2b2"},
      {"{% for i in [1, 2, 3, 4] if i % 2 == 0 %}{{ i }}/{{ loop.length }}{% endfor %}", "2/24/2"},
      {"{% for i in [] %}x{% else %}none{% endfor %}", "none"},
      {"{% for i in range(9) %}{% if i == 1 %}{% continue %}{% elif i == 3 %}{% break %}{% endif "
       "%}{{ i }}{% endfor %}",
       "02"},
      {"{% for i in [1, 2] %}{% continue %}{% else %}else{% endfor %}", "else"},
      {"{% for i in 'a\u00e9' %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }}{% endfor %}",
       "<a>\u00e9a<\u00e9>"},
      {"{% for i in [3, 4] %}{{ loop.revindex }}{{ loop.first }}{{ loop.cycle('x', 'y') }}{% "
       "endfor %}",
       "2Truex1Falsey"},
      {"{% for i in missing %}x{% endfor %}", ""},
  });
}

TEST(ChatTemplate, ComputesAsPythonDoes) {
  expect_all({
      {"{{ 7 // -2 }} {{ -7 % 3 }} {{ 1 / 2 }} {{ 2 ** 10 }} {{ 7.5 % -2 }}", "-4 2 0.5 1024 -0.5"},
      {"{{ 1 < 2 < 3 }} {{ 1 == 1.0 == true }} {{ 'a' in 'abc' }} {{ 2 not in [1] }}",
       "True True True True"},
      {"{{ 'a' ~ 1 ~ none }} {{ [1] + [2] }} {{ (1,) }} {{ 'ab' * 2 }}", "a1None [1, 2] (1,) abab"},
      {"{{ 'h\u00e9llo'[1:3] }} {{ 'h\u00e9llo'[-1] }} {{ [1, 2, 3][::-1] }}",
       "\u00e9l o [3, 2, 1]"},
      {"{{ none or 'x' }} {{ 0 and y }} {{ not [] }} {{ 'a' if false }}", "x 0 True "},
      {"{{ {'items': 1}['items'] }} {{ {'a': 1}.a }} {{ {'a': 1}.b }} {{ 'x'.b is defined }}",
       "1 1  False"},
      {"{{ ('<' | safe) + '<' }} {{ ('<' | safe) ~ '<' }}", "<&lt; <<"},
      {"{{ 2 + 3 | abs }} {{ -2 | abs }} {{ 'A' ~ 'b' | upper }}", "5 2 AB"},
  });
}

TEST(ChatTemplate, HasTheFiltersMethodsAndTestsOfTheSubset) {
  expect_all(
      {
          {"{{ ' x ' | trim }}{{ v | length }}{{ y | default('d') }}{{ '' | default('e', true) }}",
           "x3de"},
          {"{{ v | map(attribute='n') | list }} {{ v | selectattr('n', 'equalto', 2) | list | "
           "length }}",
           "[1, 2, 3] 1"},
          {"{{ [1, none] | reject('none') | join('-') }} {{ {'b': 1, 'a': 2} | dictsort }}",
           "1 [('a', 2), ('b', 1)]"},
          {"{{ 'a-b c' | title }} {{ 'STRASSE \u03a3\u0391\u03a3' | lower }} {{ '\u00df' | upper "
           "}}",
           "A-B C strasse \u03c3\u03b1\u03c2 SS"},
          {"{{ '1_0' | int }} {{ 'x' | int(-1) }} {{ '2.9' | int }} {{ 'a.b' | replace('.', '') }}",
           "10 -1 2 ab"},
          {"{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1)[1] }}",
           "['a', 'b', '', 'c'] ['a', 'b'] b c"},
          {"{{ 'xxaxx'.strip('x') }} {{ 'abc'.startswith(('b', 'a')) }} {{ 'hello "
           "wORLD'.capitalize() }}",
           "a True Hello world"},
          {"{{ v[0].get('z', 5) }} {{ v[0].get('z') }} {{ 'abc'.replace('b', 'x') }}",
           "5 None axc"},
          {"{{ 1 is number }} {{ v is sequence }} {{ v is mapping }} {{ y is undefined }} {{ true "
           "is boolean }}",
           "True True False True True"},
          {"{{ 4 is even }} {{ 'a' is string }} {{ none is none }} {{ 'ab' is in(['ab']) }}",
           "True True True True"},
      },
      "{\"v\": [{\"n\": 1}, {\"n\": 2}, {\"n\": 3}]}");
}

TEST(ChatTemplate, FormatsTheGivenDate) {
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y') }}", "{\"date_now\": 1773500966}"), "14 Mar 2026");
  EXPECT_THAT(problem("{{ strftime_now('%d') }}"), HasSubstr("date_now"));
}

TEST(ChatTemplate, NamesTheLineOfAnError) {
  EXPECT_EQ(problem("a\n{{ raise_exception('no ' ~ x) }}", "{\"x\": 1}"),
            "t, line 2: raise_exception: no 1");
  EXPECT_EQ(problem("\n\n{{ x.y.z }}", "{\"x\": {}}"), "t, line 3: 'y' is undefined");
  EXPECT_THAT(problem("{{ 'a' + 1 }}"), HasSubstr("str and int"));
  EXPECT_THAT(problem("{% set x.y = 1 %}", "{\"x\": {}}"), HasSubstr("not a namespace"));
  EXPECT_THAT(problem("{{ missing | tojson }}"), HasSubstr("not JSON serializable"));
}

TEST(ChatTemplate, RefusesWhatIsOutsideOfTheSubset) {
  const std::pair<const char*, const char*> cases[] = {
      {"\n{% include 'x' %}", "t, line 2: the tag include is not supported"},
      {"{{ x | urlize }}", "the filter urlize is not supported"},
      {"{{ x is sameas 1 }}", "the test sameas is not supported"},
      {"{{ 'a'.format(1) }}", "the method format is not supported"},
      {"{% for x in y recursive %}{% endfor %}", "recursive loops are not supported"},
      {"{% macro m() %}{{ caller() }}{% endmacro %}", "caller in a macro is not supported"},
      {"{{ lipsum() }}", "the function lipsum is not supported"},
      {"{{ x.__class__ }}", "__class__"},
      {"{% break %}", "break outside of a loop"},
      {"{% for x in y %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
       "break outside of a loop"},
      {"{% if x %}", "the template ends inside a block"},
      {"{{ x", "expected }}"},
      {"{# x", "expected #}"},
      {"{{ (1] }}", "unexpected ]"},
      {"{{ 'x }}", "a string does not end"},
      {"{% endif %}", "unknown or misplaced tag endif"},
      {"\xff", "not UTF-8"},
  };
  for (const auto& [source, text] : cases) EXPECT_THAT(problem(source), HasSubstr(text)) << source;
}

// No template may take the process down or run forever.
TEST(ChatTemplate, BoundsItsWork) {
  const std::string loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(problem(loops, "{}", {.steps = 100'000}), HasSubstr("more than 100000 steps"));
  const std::string grows = "{% for a in range(9999) %}{{ 'x' * 1000 }}{% endfor %}";
  EXPECT_THAT(problem(grows, "{}", {.output_bytes = 1'000'000}),
              HasSubstr("longer than 1000000 bytes"));
  const std::string doubles =
      "{% set n = namespace(s='x') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}";
  EXPECT_THAT(problem(doubles, "{}", {.memory_bytes = 10'000'000}),
              HasSubstr("10000000 bytes of memory"));
  EXPECT_THAT(problem("{{ 'x' * 99999999999 }}"), HasSubstr("too long"));
  EXPECT_THAT(problem("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("nested too deeply"));
  const std::string nests =
      "{% set n = namespace(v=[]) %}{% for a in range(9999) %}{% set n.v = [n.v] %}{% endfor %}";
  EXPECT_THAT(problem(nests + "{{ n.v }}"), HasSubstr("250 levels"));
  EXPECT_THAT(problem(nests + "{{ n.v | tojson }}"), HasSubstr("250 levels"));
  EXPECT_THAT(problem(nests + "{% set w = [n.v] %}{{ n.v[0] == w[0] }}"), HasSubstr("250 levels"));
  EXPECT_THAT(problem("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"),
              HasSubstr("150 levels"));
  EXPECT_THAT(problem("{{ " + std::string(5000, '-') + "1 }}"), HasSubstr("150 levels"));
  std::string sum = "{{ 1";
  for (int i = 0; i < 100'000; ++i) sum += "+1";
  EXPECT_THAT(problem(sum + " }}"), HasSubstr("1000 nested operations"));
  EXPECT_THAT(problem("{{ range(100001) }}"), HasSubstr("100000"));
}

TEST(ChatTemplate, RendersOnManyThreads) {
  const chat_template shared = chat_template::parse(llama3, "llama3");
  value_pool pool;
  const auto variables = parse_json(
      "{\"bos_token\": \"B\", \"messages\": [{\"role\": \"u\", \"content\": \"x\"}]}", pool);
  const std::string want = shared.render(variables).text;
  std::vector<std::string> got(4);
  std::vector<std::thread> threads;
  for (std::string& one : got) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) one = shared.render(variables).text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : got) EXPECT_EQ(one, want);
}

}  // namespace
}  // namespace millrace::chat
