// SPDX-License-Identifier: Apache-2.0
#include <millrace/chat/training_text.hpp>

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/chat/chat_template.hpp>
#include <millrace/chat/value.hpp>

namespace millrace::chat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Each message by itself, with its reasoning and its tool calls.
constexpr std::string_view plain =
    "{{ bos_token }}{% if tools %}[tools {{ tools | length }}]{% endif %}"
    "{% for m in messages %}<{{ m.role }}>"
    "{% if m.reasoning_content %}(think: {{ m.reasoning_content | trim }}) {% endif %}"
    "{{ m.content }}"
    "{% for call in m.tool_calls %}(call: {{ call.function.name }}){% endfor %}"
    "<end>\n{% endfor %}";
constexpr std::string_view marked =
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}<end>{% endgeneration %}{% else %}{{ m.content }}<end>"
    "{% endif %}{% endfor %}";

/// The trained parts of a record's text, each as a text.
std::vector<std::string> trained_in(std::string_view source, const std::string& record,
                                    training_options options = {}) {
  options.special_tokens = {"<end>", "<start>"};
  const std::vector<dict_entry> variables = {{value("bos_token"), value("<start>")}};
  training_renderer renderer({chat_template::parse(source, "test")}, variables, options);
  value_pool pool;
  training_text out;
  // Twice, because a renderer is used for many records.
  renderer.render(parse_json(R"({"messages": [{"role": "user", "content": "other"}]})", pool), out);
  renderer.render(parse_json(record, pool), out);
  std::vector<std::string> parts;
  std::size_t last = 0;
  for (const byte_span& span : out.trained) {
    EXPECT_LT(span.begin, span.end);
    EXPECT_TRUE(parts.empty() || last < span.begin);
    EXPECT_LE(span.end, out.text.size());
    last = span.end;
    parts.push_back(out.text.substr(span.begin, span.end - span.begin));
  }
  return parts;
}

std::string refusal(const std::string& record, const training_options& options = {},
                    std::string_view source = plain) {
  try {
    (void)trained_in(source, record, options);
  } catch (const error& e) {
    return e.what();
  }
  return "rendered";
}

const std::string two_turns = R"({"messages": [
    {"role": "system", "content": "s"}, {"role": "user", "content": "u"},
    {"role": "assistant", "content": "a"}, {"role": "user", "content": "v"},
    {"role": "assistant", "content": "b"}]})";

TEST(TrainingText, TrainsTheTurnsOfTheAssistant) {
  EXPECT_THAT(trained_in(plain, two_turns),
              ElementsAre("<assistant>a<end>\n", "<assistant>b<end>\n"));
  EXPECT_THAT(trained_in(plain, two_turns, {.turns = trained_turns::last}),
              ElementsAre("<assistant>b<end>\n"));
  EXPECT_THAT(trained_in(plain, two_turns, {.turns = trained_turns::all}),
              ElementsAre("<start><system>s<end>\n<user>u<end>\n<assistant>a<end>\n<user>v<end>\n"
                          "<assistant>b<end>\n"));
}

TEST(TrainingText, FollowsTheTemplatesOwnMarks) {
  EXPECT_THAT(trained_in(marked, two_turns), ElementsAre("a<end>", "b<end>"));
  EXPECT_THAT(trained_in(marked, two_turns, {.turns = trained_turns::last}), ElementsAre("b<end>"));
  EXPECT_THAT(trained_in(marked, two_turns, {.ends = trained_ends::none}), ElementsAre("a", "b"));
}

TEST(TrainingText, TrainsEndsOfTurnsAsAsked) {
  EXPECT_THAT(trained_in(plain, two_turns, {.ends = trained_ends::last}),
              ElementsAre("<assistant>a", "<assistant>b<end>\n"));
  EXPECT_THAT(trained_in(plain, two_turns, {.ends = trained_ends::none}),
              ElementsAre("<assistant>a", "<assistant>b"));
  // Only at the end of a turn is it an end.
  const std::string inside = R"({"messages": [{"role": "assistant", "content": "a<end>b"}]})";
  EXPECT_THAT(trained_in("{{ messages[0].content }}", inside, {.ends = trained_ends::none}),
              ElementsAre("a<end>b"));
}

TEST(TrainingText, LeavesOutReasoningAndToolCalls) {
  const std::string record = R"({"messages": [{"role": "user", "content": "u"},
      {"role": "assistant", "content": "a", "reasoning_content": " why ",
       "tool_calls": [{"function": {"name": "f"}}, {"function": {"name": "g"}}]},
      {"role": "tool", "content": "t"}, {"role": "assistant", "content": "b"}]})";
  EXPECT_THAT(
      trained_in(plain, record),
      ElementsAre("<assistant>(think: why) a(call: f)(call: g)<end>\n", "<assistant>b<end>\n"));
  EXPECT_THAT(
      trained_in(plain, record, {.reasoning = false}),
      ElementsAre("<assistant>(think: ", ") a(call: f)(call: g)<end>\n", "<assistant>b<end>\n"));
  EXPECT_THAT(trained_in(plain, record, {.tool_calls = false}),
              ElementsAre("<assistant>(think: why) a", "<end>\n", "<assistant>b<end>\n"));
  EXPECT_THAT(trained_in(plain, record, {.reasoning = false, .tool_calls = false}),
              ElementsAre("<assistant>(think: ", ") a", "<end>\n", "<assistant>b<end>\n"));
  EXPECT_THAT(refusal(record, {.reasoning = false},
                      "{% for m in messages %}{{ m.reasoning_content }}{{ m.reasoning_content }}"
                      "{% endfor %}"),
              HasSubstr("message 1: the template does not say where its 'reasoning_content' is, "
                        "because it occurs more than once"));
}

TEST(TrainingText, TreatsReasoningAsAsked) {
  const std::string record = R"({"messages": [{"role": "assistant", "content": "a",
      "reasoning_content": "r", "tool_calls": [{"function": {"name": "f", "arguments": "{\"x\": 1}"}}]}]})";
  constexpr std::string_view source =
      "{% for m in messages %}{{ m.reasoning_content }}|{{ m.content }}|"
      "{% for c in m.tool_calls %}{{ c.function.arguments is mapping }}{% endfor %}{% endfor %}";
  const auto with = [&](reasoning_form form) {
    return trained_in(source, record, {.reasoning_as = form});
  };
  EXPECT_THAT(with(reasoning_form::native), ElementsAre("r|a|False"));
  EXPECT_THAT(with(reasoning_form::strip), ElementsAre("|a|True"));
  EXPECT_THAT(with(reasoning_form::inlined), ElementsAre("|<think>\nr\n</think>\na|True"));
}

TEST(TrainingText, FindsReasoningUnderEachOfItsNames) {
  constexpr std::string_view source =
      "{% for m in messages %}{{ m.thinking }}|{{ m.content }}{% endfor %}";
  for (const std::string name : {"reasoning_content", "thinking", "reasoning"}) {
    SCOPED_TRACE(name);
    const std::string record =
        R"({"messages": [{"role": "assistant", "content": "a", ")" + name + R"(": "why"}]})";
    EXPECT_THAT(trained_in(source, record), ElementsAre("why|a"));
    EXPECT_THAT(trained_in(source, record, {.reasoning = false}), ElementsAre("|a"));
    EXPECT_THAT(trained_in(source, record, {.reasoning_as = reasoning_form::strip}),
                ElementsAre("|a"));
    EXPECT_THAT(trained_in(source, record, {.reasoning_as = reasoning_form::inlined}),
                ElementsAre("|<think>\nwhy\n</think>\na"));
  }
  // What cannot become one text is refused, and not left out.
  EXPECT_EQ(refusal(R"({"messages": [{"role": "assistant", "reasoning": "r",
                        "content": [{"type": "text", "text": "a"}]}]})",
                    {.reasoning_as = reasoning_form::inlined}),
            "message 0 of 'messages' has reasoning and content that are not both texts, so they "
            "cannot be one text");
  EXPECT_THAT(refusal(R"({"messages": [{"role": "assistant", "content": "a", "thinking": ["r"]}]})",
                      {.reasoning = false}),
              HasSubstr("because it is not a text"));
}

TEST(TrainingText, KnowsTheSchemasOfDatasets) {
  const auto text = [](const std::string& record) {
    return trained_in(
        plain, record,
        {.roles = {{"bot", "assistant"}, {"x", "judge"}}, .turns = trained_turns::all});
  };
  const auto is = [](const char* rest) { return ElementsAre(std::string("<start>") + rest); };
  EXPECT_THAT(
      text(R"({"messages": [{"from": "human", "value": "u"}, {"from": "gpt", "value": "a"}]})"),
      is("<user>u<end>\n<assistant>a<end>\n"));
  EXPECT_THAT(
      text(R"({"messages": [{"role": "bot", "content": "a"}, {"role": "x", "content": "y"}]})"),
      is("<assistant>a<end>\n<judge>y<end>\n"));
  EXPECT_THAT(text(R"({"prompt": "u", "completion": "a"})"),
              is("<user>u<end>\n<assistant>a<end>\n"));
  EXPECT_THAT(text(R"({"prompt": [{"role": "system", "content": "s"}],
                       "completion": [{"role": "assistant", "content": "a"}]})"),
              is("<system>s<end>\n<assistant>a<end>\n"));
  EXPECT_THAT(text(R"({"instruction": "i", "input": "n", "output": "o"})"),
              is("<user>i\n\nn<end>\n<assistant>o<end>\n"));
  EXPECT_THAT(text(R"({"instruction": "i", "input": "", "output": "o"})"),
              is("<user>i<end>\n<assistant>o<end>\n"));
  EXPECT_THAT(text(R"({"messages": [{"role": "user", "content": "u"}],
                       "tools": "[{\"function\": {\"name\": \"f\"}}]"})"),
              is("[tools 1]<user>u<end>\n"));
  EXPECT_THAT(trained_in(plain, R"({"messages": [{"role": "user", "content": "u"}]})"), IsEmpty());
}

TEST(TrainingText, SaysWhatIsWrongWithARecord) {
  EXPECT_EQ(refusal("[1]"), "the record is a list, expected an object");
  EXPECT_EQ(refusal(R"({"text": "a"})"),
            "there is no 'messages', nor 'prompt' and 'completion', nor 'instruction' and "
            "'output'; the record has 'text'");
  EXPECT_EQ(refusal(R"({"messages": "a"})"), "'messages' is a text, expected a list of messages");
  EXPECT_EQ(refusal(R"({"messages": []})"), "'messages' is empty");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "user", "content": "u"}, 3]})"),
            "message 1 of 'messages' is a number, expected an object with 'role' and "
            "'content'");
  EXPECT_EQ(refusal(R"({"messages": [{"content": "u"}]})"),
            "message 0 of 'messages' has nothing as 'role', expected the name of a role");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "owner", "content": "u"}]})"),
            "message 0 of 'messages' has the role 'owner', which is unknown; --roles-map "
            "owner=user makes it known");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "user", "content": null}]})"),
            "message 0 of 'messages' has no 'content'");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "user", "content": 7}]})"),
            "message 0 of 'messages' has a number as 'content', expected a text or a list of "
            "parts");
  EXPECT_THAT(
      refusal(R"({"messages": [{"role": "user", "content": "u"}], "tools": [{"name": 3}]})"),
      HasSubstr("tool 0 of 'tools' is no JSON schema, expected {\"type\": \"function\""));
  EXPECT_THAT(refusal(R"({"messages": [{"role": "user", "content": "u"}], "tools": "[1"})"),
              HasSubstr("'tools' is a text that is not JSON"));
}

// A template that looks ahead cannot be cut into turns, and must not be trained in a wrong place.
TEST(TrainingText, RefusesTemplatesThatLookAhead) {
  constexpr std::string_view source =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n"
      "{% if loop.last %}[last]{% endif %}<end>{% endfor %}";
  EXPECT_EQ(refusal(two_turns, {}, source),
            "the template renders message 1 in another way if others follow it (line 2 of the "
            "template), so it does not say what belongs to which message; use a template with "
            "{% generation %}, or --train-on all");
  EXPECT_EQ(refusal(two_turns, {.turns = trained_turns::all}, source), "rendered");
}

}  // namespace
}  // namespace millrace::chat
