// SPDX-License-Identifier: Apache-2.0
#include <millrace/chat/training_text.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <millrace/formats/detail/in_quotes.hpp>

namespace millrace::chat {

namespace {

using formats::in_quotes;

constexpr std::array known_roles = {"system", "developer", "user",   "assistant",
                                    "tool",   "function",  "ipython"};
// Stands for a text that is searched for. Nobody writes it by chance, and no template changes it.
constexpr std::string_view marker = "millrace0marker7d1f4c9ea2";

constexpr const char* name_of(value_kind kind) noexcept {
  switch (kind) {
    case value_kind::none:
      return "null";
    case value_kind::boolean:
      return "true or false";
    case value_kind::integer:
    case value_kind::big_integer:
    case value_kind::real:
      return "a number";
    case value_kind::string:
      return "a text";
    case value_kind::list:
      return "a list";
    case value_kind::dict:
      return "an object";
    default:
      return "another value";
  }
}

[[noreturn]] void fail(const std::string& what) {
  throw conversation_error(what);
}

/// The value of a key; null if it is missing or JSON's null.
const value* given(const value& dict, std::string_view key) {
  const value* const found = dict.find(key);
  return found == nullptr || found->is(value_kind::none) ? nullptr : found;
}

// Datasets name it in three ways; transformers gives templates all of them.
constexpr std::array<std::string_view, 3> reasoning_fields = {"reasoning_content", "thinking",
                                                              "reasoning"};

bool is_reasoning(const dict_entry& field) {
  return std::ranges::find(reasoning_fields, field.key.text()) != reasoning_fields.end();
}

const value* reasoning_of(const value& message) {
  for (const std::string_view name : reasoning_fields) {
    if (const value* const found = given(message, name)) return found;
  }
  return nullptr;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == text.npos;
}

std::size_t common_begin(std::string_view a, std::string_view b) {
  if (b.starts_with(a)) return a.size();
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// Adds [begin, end) to ascending spans that do not overlap.
void add_span(std::vector<byte_span>& spans, std::size_t begin, std::size_t end) {
  if (begin >= end) return;
  if (!spans.empty() && begin <= spans.back().end) {
    spans.back().end = std::max(spans.back().end, end);
  } else {
    spans.push_back({begin, end});
  }
}

/// The parts of ascending spans that are in no other span.
std::vector<byte_span> difference(const std::vector<byte_span>& spans,
                                  std::vector<byte_span> others) {
  std::ranges::sort(others, {}, &byte_span::begin);
  std::vector<byte_span> left;
  for (const byte_span& span : spans) {
    std::size_t at = span.begin;
    for (const byte_span& other : others) {
      if (other.end <= at || other.begin >= span.end) continue;
      add_span(left, at, std::min(other.begin, span.end));
      at = std::max(at, other.end);
    }
    add_span(left, at, span.end);
  }
  return left;
}

}  // namespace

training_renderer::training_renderer(training_templates with, std::vector<dict_entry> variables,
                                     training_options options)
    : templates_(std::move(with)), variables_(std::move(variables)), options_(std::move(options)) {}

value training_renderer::reasoning_applied(const value& message, const std::string& where) {
  if (options_.reasoning_as == reasoning_form::native) return message;
  const value* const reasoning = reasoning_of(message);
  std::vector<dict_entry> fields;
  for (const dict_entry& field : message.entries()) {
    if (!is_reasoning(field)) fields.push_back(field);
  }
  if (options_.reasoning_as == reasoning_form::inlined && reasoning != nullptr) {
    const value* const content = given(message, "content");
    if (!reasoning->is_string() || (content != nullptr && !content->is_string())) {
      fail(where +
           " has reasoning and content that are not both texts, so they cannot be one text");
    }
    const value joined =
        pool_.string(fmt::format("<think>\n{}\n</think>\n{}", reasoning->text(),
                                 content == nullptr ? std::string_view() : content->text()));
    const auto at = std::ranges::find(fields, "content",
                                      [](const dict_entry& field) { return field.key.text(); });
    if (reasoning->text().empty()) {
      // As Model-Optimizer, which adds no empty thoughts.
    } else if (at == fields.end()) {
      fields.push_back({value("content"), joined});
    } else {
      at->item = joined;
    }
  }
  for (dict_entry& field : fields) {
    if (field.key.text() == "tool_calls" && field.item.is(value_kind::list)) {
      field.item = parsed_arguments(field.item);
    }
  }
  return pool_.dict(fields);
}

// As Model-Optimizer, which many datasets are made for: arguments that are a JSON text become what
// the text says, because templates iterate over them.
value training_renderer::parsed_arguments(const value& calls) {
  const auto parsed = [&](const value& of) {
    if (!of.is(value_kind::dict)) return of;
    std::vector<dict_entry> fields(of.entries().begin(), of.entries().end());
    for (dict_entry& field : fields) {
      if (field.key.text() != "arguments" || !field.item.is_string()) continue;
      try {
        field.item = parse_json(field.item.text(), pool_);
      } catch (const format_error&) {  // a text that is no JSON stays a text
      }
    }
    return pool_.dict(fields);
  };
  std::vector<value> all;
  for (const value& call : calls.items()) {
    value one = parsed(call);
    if (one.is(value_kind::dict)) {
      std::vector<dict_entry> fields(one.entries().begin(), one.entries().end());
      for (dict_entry& field : fields) {
        if (field.key.text() == "function") field.item = parsed(field.item);
      }
      one = pool_.dict(fields);
    }
    all.push_back(one);
  }
  return pool_.list(all);
}

value training_renderer::message_of(const value& from, std::size_t number, const std::string& key) {
  const auto where = [&] { return fmt::format("message {} of {}", number, in_quotes(key)); };
  if (!from.is(value_kind::dict)) {
    fail(fmt::format("{} is {}, expected an object with 'role' and 'content'", where(),
                     name_of(from.kind())));
  }
  const bool is_share_gpt = from.find("role") == nullptr && from.find("from") != nullptr;
  const std::string_view role_key = is_share_gpt ? "from" : "role";
  const std::string_view content_key = is_share_gpt ? "value" : "content";
  const value* const role = from.find(role_key);
  if (role == nullptr || !role->is_string()) {
    fail(fmt::format("{} has {} as {}, expected the name of a role", where(),
                     role == nullptr ? "nothing" : name_of(role->kind()), in_quotes(role_key)));
  }
  std::string_view name = role->text();
  const auto mapped = std::ranges::find(
      options_.roles, name, [](const auto& pair) { return std::string_view(pair.first); });
  if (mapped != options_.roles.end()) {
    name = mapped->second;
  } else if (name == "human") {
    name = "user";
  } else if (name == "gpt") {
    name = "assistant";
  } else if (std::ranges::find(known_roles, name) == known_roles.end()) {
    fail(fmt::format("{} has the role {}, which is unknown; --roles-map {}=user makes it known",
                     where(), in_quotes(name), name));
  }
  const value* const content = given(from, content_key);
  if (content == nullptr && given(from, "tool_calls") == nullptr) {
    fail(fmt::format("{} has no {}", where(), in_quotes(content_key)));
  }
  if (content != nullptr && !content->is_string() && !content->is(value_kind::list)) {
    fail(fmt::format("{} has {} as {}, expected a text or a list of parts", where(),
                     name_of(content->kind()), in_quotes(content_key)));
  }
  if (!is_share_gpt && name == role->text()) return reasoning_applied(from, where());
  std::vector<dict_entry> fields = {{value("role"), pool_.string(name)}};
  for (const dict_entry& field : from.entries()) {
    if (field.key.text() == role_key) continue;
    fields.push_back(field);
    if (field.key.text() == content_key) fields.back().key = value("content");
  }
  return reasoning_applied(pool_.dict(fields), where());
}

std::vector<value> training_renderer::openai_messages(const value& list, const std::string& key) {
  if (!list.is(value_kind::list)) {
    fail(
        fmt::format("{} is {}, expected a list of messages", in_quotes(key), name_of(list.kind())));
  }
  std::vector<value> messages;
  for (const value& each : list.items()) {
    messages.push_back(message_of(each, messages.size(), key));
  }
  return messages;
}

std::vector<value> training_renderer::messages_of(const value& record) {
  const auto message = [&](const char* role, const value& content) {
    const std::array<dict_entry, 2> fields = {dict_entry{value("role"), value(role)},
                                              dict_entry{value("content"), content}};
    return pool_.dict(fields);
  };
  const auto text_of = [&](const char* key) {
    const value* const found = given(record, key);
    if (found == nullptr) return std::string_view();
    if (found->is_string()) return found->text();
    fail(fmt::format("{} is {}, expected a text", in_quotes(key), name_of(found->kind())));
  };
  if (const value* const list = record.find(options_.messages_key)) {
    auto messages = openai_messages(*list, options_.messages_key);
    if (messages.empty()) fail(fmt::format("{} is empty", in_quotes(options_.messages_key)));
    return messages;
  }
  if (record.find("prompt") != nullptr && record.find("completion") != nullptr) {
    std::vector<value> messages;
    for (const auto& [key, role] : {std::pair("prompt", "user"), {"completion", "assistant"}}) {
      const value& part = *record.find(key);
      if (part.is_string()) {
        messages.push_back(message(role, part));
        continue;
      }
      for (const value& each : openai_messages(part, key)) messages.push_back(each);
    }
    if (messages.empty()) fail("'prompt' and 'completion' are empty");
    return messages;
  }
  if (record.find("instruction") != nullptr && record.find("output") != nullptr) {
    const std::string_view input = text_of("input");
    const std::string_view instruction = text_of("instruction");
    return {
        message("user", input.empty() ? value(instruction)
                                      : pool_.string(fmt::format("{}\n\n{}", instruction, input))),
        message("assistant", value(text_of("output")))};
  }
  std::string keys;
  for (const dict_entry& entry :
       record.entries().first(std::min<std::size_t>(record.entries().size(), 6))) {
    keys += (keys.empty() ? "; the record has " : ", ") + in_quotes(entry.key.text());
  }
  fail(
      fmt::format("there is no {}, nor 'prompt' and 'completion', nor 'instruction' and 'output'{}",
                  in_quotes(options_.messages_key), keys));
}

value training_renderer::tools_of(const value& record) {
  const value* const found = given(record, options_.tools_key);
  if (found == nullptr) return {};
  value tools = *found;
  if (tools.is_string()) {  // a JSON text, as in columns of one type
    try {
      tools = parse_json(tools.text(), pool_);
    } catch (const format_error& e) {
      fail(fmt::format("{} is a text that is not JSON: {}", in_quotes(options_.tools_key),
                       e.problem()));
    }
    if (tools.is(value_kind::none)) return {};
  }
  if (!tools.is(value_kind::list)) {
    fail(fmt::format("{} is {}, expected a list of tools", in_quotes(options_.tools_key),
                     name_of(tools.kind())));
  }
  std::size_t number = 0;
  for (const value& tool : tools.items()) {
    const value* of = tool.is(value_kind::dict) ? &tool : nullptr;
    if (of != nullptr && of->find("function") != nullptr) of = of->find("function");
    const value* const name =
        of != nullptr && of->is(value_kind::dict) ? of->find("name") : nullptr;
    const value* const parameters = name != nullptr ? given(*of, "parameters") : nullptr;
    if (name == nullptr || !name->is_string() ||
        (parameters != nullptr && !parameters->is(value_kind::dict))) {
      fail(
          fmt::format("tool {} of {} is no JSON schema, expected {{\"type\": \"function\", "
                      "\"function\": {{\"name\": ..., \"parameters\": {{...}}}}}}",
                      number, in_quotes(options_.tools_key)));
    }
    ++number;
  }
  return tools.items().empty() ? value() : tools;
}

const chat_template& training_renderer::template_for(const value& tools) const noexcept {
  const auto& [usual, with_tools] = templates_;
  return with_tools && !tools.is(value_kind::none) ? *with_tools : usual;
}

void training_renderer::run(std::span<const value> messages, const value& tools, rendered& out,
                            const render_limits& limits) {
  conversation from;
  from.messages = value(messages);
  from.tools = tools;
  template_for(tools).render(make_variables(from, variables_, pool_), out, limits);
}

// The place of the end of a turn: its last special token, if only white space follows; otherwise,
// the size of the turn.
std::size_t training_renderer::end_mark(std::string_view turn) const {
  std::size_t last = turn.npos;
  std::size_t size = 0;
  for (const std::string& token : options_.special_tokens) {
    const std::size_t at = token.empty() ? turn.npos : turn.rfind(token);
    if (at == turn.npos || (last != turn.npos && at + token.size() <= last + size)) continue;
    last = at;
    size = token.size();
  }
  if (last == turn.npos || !is_blank(turn.substr(last + size))) return turn.size();
  return last;
}

// Finds the bytes that one field of a message renders, by rendering without it.
void training_renderer::leave_out(std::span<const value> messages, const value& tools,
                                  std::size_t number, const training_text& all,
                                  std::vector<byte_span>& without) {
  const value& message = messages[number];
  std::vector<value> changed(messages.begin(), messages.end());
  const auto refuse = [&](const char* field, const std::string& why) {
    fail(
        fmt::format("message {}: the template does not say where its {} is, because {}; train on "
                    "it, too, or use a template with {{% generation %}}",
                    number, in_quotes(field), why));
  };
  if (const value* const reasoning = reasoning_of(message);
      reasoning != nullptr && !options_.reasoning) {
    if (!reasoning->is_string()) refuse("reasoning_content", "it is not a text");
    std::vector<dict_entry> fields(message.entries().begin(), message.entries().end());
    for (dict_entry& field : fields) {
      if (is_reasoning(field)) field.item = value(marker);
    }
    changed[number] = pool_.dict(fields);
    run(changed, tools, part_);
    const std::string_view text = part_.text;
    const std::size_t at = text.find(marker);
    if (at != text.npos) {  // templates may leave out the reasoning of earlier turns
      const std::size_t after = text.size() - at - marker.size();
      if (text.find(marker, at + 1) != text.npos) {
        refuse("reasoning_content", "it occurs more than once");
      }
      const std::string_view whole = all.text;
      if (at + after > whole.size() || !whole.starts_with(text.substr(0, at)) ||
          !whole.ends_with(text.substr(at + marker.size()))) {
        refuse("reasoning_content", "the text around it depends on it");
      }
      without.push_back({at, whole.size() - after});
    }
  }
  if (given(message, "tool_calls") == nullptr || options_.tool_calls) return;
  std::vector<dict_entry> fields;
  for (const dict_entry& field : message.entries()) {
    if (field.key.text() != "tool_calls") fields.push_back(field);
  }
  if (given(message, "content") == nullptr) {
    std::erase_if(fields, [](const dict_entry& field) { return field.key.text() == "content"; });
    fields.push_back({value("content"), value("")});
  }
  changed[number] = pool_.dict(fields);
  run(changed, tools, part_);
  const std::string_view text = part_.text;
  const std::string_view whole = all.text;
  const std::size_t begin = common_begin(text, whole);
  const std::size_t rest = text.size() - begin;
  if (text.size() > whole.size() || !whole.ends_with(text.substr(begin))) {
    refuse("tool_calls", "the text around them depends on them");
  }
  without.push_back({begin, whole.size() - rest});
}

void training_renderer::check_turns(std::span<const value> messages) const {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].find("role")->text() != "assistant") continue;
    const value* const content = given(messages[i], "content");
    if (content == nullptr || !content->is_string() || content->text().empty()) {
      fail(fmt::format("message {}: a turn of the assistant has no text", i));
    }
    const std::string_view before = i == 0 ? "" : messages[i - 1].find("role")->text();
    if (before != "user" && before != "tool") {
      fail(fmt::format("message {}: a turn of the assistant must follow a user or a tool", i));
    }
  }
}

void training_renderer::find_turns(std::span<const value> messages, const value& tools,
                                   training_text& out) {
  std::string before;  // the rendering of the messages before `rendered_to`
  std::size_t rendered_to = 0;
  const auto rendering_of = [&](std::size_t count) -> std::string_view {
    if (count == messages.size()) return out.text;
    if (count == rendered_to) return before;
    try {
      run(messages.first(count), tools, part_);
    } catch (const template_error& e) {
      fail(
          fmt::format("the template refuses the first {} of {} messages alone, so it does not say "
                      "what belongs to which message; use a template with {{% generation %}}, or "
                      "--train-on all ({})",
                      count, messages.size(), e.what()));
    }
    std::swap(before, part_.text);
    rendered_to = count;
    return before;
  };
  const auto expect_begin = [&](std::size_t count) {
    const std::string_view part = rendering_of(count);
    const std::size_t same = common_begin(part, out.text);
    if (same == part.size()) return same;
    fail(
        fmt::format("the template renders message {} in another way if others follow it{}, so it "
                    "does not say what belongs to which message; use a template with "
                    "{{% generation %}}, or --train-on all",
                    count - 1, line_of(messages, tools, same)));
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].find("role")->text() != "assistant") continue;
    const std::size_t begin = i == 0 ? 0 : expect_begin(i);
    const std::size_t end = expect_begin(i + 1);
    out.trained.push_back({begin, std::max(begin, end)});
  }
}

std::string training_renderer::line_of(std::span<const value> messages, const value& tools,
                                       std::size_t at) {
  // The statement that would exceed a limit of so many bytes writes the next one.
  try {
    run(messages, tools, part_, {.output_bytes = at});
  } catch (const template_error& e) {
    return fmt::format(" (line {} of the template)", e.line());
  }
  return "";
}

void training_renderer::render(const value& record, training_text& out) {
  pool_.clear();
  out.trained.clear();
  if (!record.is(value_kind::dict)) {
    fail(fmt::format("the record is {}, expected an object", name_of(record.kind())));
  }
  const std::vector<value> messages = messages_of(record);
  if (options_.strict_turns) check_turns(messages);
  const value tools = tools_of(record);
  run(messages, tools, part_);
  std::swap(out.text, part_.text);
  if (options_.turns == trained_turns::all) {
    add_span(out.trained, 0, out.text.size());
    return;
  }
  if (template_for(tools).has_generation_blocks()) {
    out.trained = part_.generation;
    std::ranges::sort(out.trained, {}, &byte_span::begin);
  } else {
    find_turns(messages, tools, out);
  }
  if (options_.turns == trained_turns::last && out.trained.size() > 1) {
    out.trained.erase(out.trained.begin(), out.trained.end() - 1);
  }
  std::vector<byte_span> without;
  for (std::size_t i = 0; i < out.trained.size(); ++i) {
    const byte_span& turn = out.trained[i];
    const bool is_last = i + 1 == out.trained.size();
    if (options_.ends == trained_ends::turn || (options_.ends == trained_ends::last && is_last)) {
      continue;
    }
    const auto text = std::string_view(out.text).substr(turn.begin, turn.end - turn.begin);
    without.push_back({turn.begin + end_mark(text), turn.end});
  }
  if (!options_.reasoning || !options_.tool_calls) {
    for (std::size_t i = messages.size(); i-- > 0;) {
      if (messages[i].find("role")->text() != "assistant") continue;
      leave_out(messages, tools, i, out, without);
      if (options_.turns == trained_turns::last) break;
    }
  }
  if (options_.strict_turns && without.empty()) {
    std::erase_if(out.trained, [](const byte_span& turn) { return turn.begin >= turn.end; });
    return;
  }
  std::vector<byte_span> joined;
  for (const byte_span& turn : out.trained) add_span(joined, turn.begin, turn.end);
  out.trained = difference(joined, std::move(without));
}

}  // namespace millrace::chat
