// SPDX-License-Identifier: Apache-2.0
#include "run/conversation_setup.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/tokenizer/detail/chat_folder.hpp>

#include "run/journal.hpp"
#include "run/output_names.hpp"
#include "run/run_meta.hpp"

namespace millrace::preprocess {
namespace {

namespace po = boost::program_options;
using command::usage_error;

constexpr const char* date_flag = "--template-date";
constexpr std::int64_t seconds_of_day = 86'400;

// The flags that mean nothing without --messages-key.
constexpr std::array own_flags = {
    "tools-key", "chat-template", "template-date",     "train-on", "train-on-eot",
    "roles-map", "max-length",    "reasoning-content", "overlong", "sft-tokenizer-prompt-format"};

/// A prompt format of Megatron's SFTTokenizer (megatron-core, sft_tokenizer.py).
struct prompt_format {
  std::string_view name;
  std::string_view source;  ///< empty: the template of the tokenizer
  chat::trained_turns turns;
  std::size_t untrained_tokens;  ///< the header of the assistant
};

constexpr std::array prompt_formats = {
    prompt_format{"nemotron-h-aligned",
                  "{%- for m in messages %}{% set text = m.content.strip() ~ '\\n' %}"
                  "{%- if m.role == 'system' %}{{ '<SPECIAL_10>System\\n' ~ text }}"
                  "{%- elif m.role == 'user' %}"
                  "{{ '<SPECIAL_11>User\\n' ~ text ~ '<SPECIAL_11>Assistant\\n' }}"
                  "{%- elif m.role == 'assistant' %}{{ text }}{% endif %}{% endfor %}",
                  chat::trained_turns::assistant, 0},
    prompt_format{
        "nemotron-nano-v2",
        "{%- for m in messages %}"
        "{%- set text = m.content.replace('/think', '').replace('/no_think', '').strip() %}"
        "{%- if m.role == 'system' %}{{ '<SPECIAL_10>System\\n' ~ text ~ '\\n' }}"
        "{%- elif m.role == 'user' %}{{ '<SPECIAL_11>User\\n' ~ text ~ '\\n' }}"
        "{%- elif m.role == 'assistant' %}{{ '<SPECIAL_11>Assistant\\n' ~ "
        "m.content.strip() ~ '\\n<SPECIAL_12>\\n' }}{% endif %}{% endfor %}",
        chat::trained_turns::assistant, 3},
    prompt_format{"identity", "{% for m in messages %}{{ m.content }}{% endfor %}",
                  chat::trained_turns::all, 0},
    prompt_format{"default", "", chat::trained_turns::all, 0}};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// Calls `take` with the value of a flag, if it was given.
template <class Take>
void with_value(const po::variables_map& given, const char* flag, Take&& take) {
  if (given.count(flag) != 0) take(given[flag].as<std::string>());
}

/// The names that a flag takes, and what they mean.
template <class T, std::size_t N>
using choices = std::array<std::pair<std::string_view, T>, N>;

constexpr choices<chat::trained_turns, 3> turns_by_name = {
    {{"assistant", chat::trained_turns::assistant},
     {"all", chat::trained_turns::all},
     {"last", chat::trained_turns::last}}};
constexpr choices<chat::trained_ends, 3> ends_by_name = {{{"turn", chat::trained_ends::turn},
                                                          {"last", chat::trained_ends::last},
                                                          {"none", chat::trained_ends::none}}};
constexpr choices<chat::reasoning_form, 3> reasoning_by_name = {
    {{"strip", chat::reasoning_form::strip},
     {"inline", chat::reasoning_form::inlined},
     {"native", chat::reasoning_form::native}}};
constexpr choices<overlong_policy, 3> overlong_by_name = {{{"drop", overlong_policy::drop},
                                                           {"truncate", overlong_policy::truncate},
                                                           {"error", overlong_policy::error}}};

template <class T, std::size_t N>
std::optional<T> chosen(const choices<T, N>& from, std::string_view name) {
  for (const auto& [each, meaning] : from) {
    if (each == name) return meaning;
  }
  return std::nullopt;
}

template <class T, std::size_t N>
T choose(const choices<T, N>& from, const char* flag, const std::string& name) {
  if (const auto found = chosen(from, name)) return *found;
  throw usage_error(fmt::format("--{} {}: expected {}, {} or {}", flag, name, from[0].first,
                                from[1].first, from[2].first));
}

template <class T, std::size_t N>
std::string name_in(const choices<T, N>& from, T meaning) {
  for (const auto& [name, each] : from) {
    if (each == meaning) return std::string(name);
  }
  return {};
}

void take_train_on(const std::string& text, chat::training_options& training) {
  const auto words = words_of(text);
  const auto fail = [&] {
    throw usage_error(
        fmt::format("--train-on {}: expected all, or assistant or last, which may be followed by "
                    ",reasoning and ,tool_calls",
                    text));
  };
  const auto turns = chosen(turns_by_name, words.front());
  if (!turns || (*turns == chat::trained_turns::all && words.size() > 1)) fail();
  training.turns = *turns;
  training.reasoning = training.tool_calls = *turns == chat::trained_turns::all;
  for (const std::string_view word : std::span(words).subspan(1)) {
    bool* const part = word == "reasoning"    ? &training.reasoning
                       : word == "tool_calls" ? &training.tool_calls
                                              : nullptr;
    if (part == nullptr || *part) fail();
    *part = true;
  }
}

std::string train_on_of(const chat::training_options& training) {
  std::string text = name_in(turns_by_name, training.turns);
  if (training.turns == chat::trained_turns::all) return text;
  if (training.reasoning) text += ",reasoning";
  if (training.tool_calls) text += ",tool_calls";
  return text;
}

void take_roles(const std::string& text, chat::training_options& training) {
  for (const std::string_view pair : words_of(text)) {
    const std::size_t equal = pair.find('=');
    const std::string_view name = pair.substr(0, equal);
    const std::string_view role = equal == pair.npos ? "" : pair.substr(equal + 1);
    const auto is_name = [&](const auto& known) { return known.first == name; };
    if (name.empty() || role.empty() || std::ranges::any_of(training.roles, is_name)) {
      throw usage_error(fmt::format(
          "--roles-map {}: expected each name once, as in human=user,gpt=assistant", text));
    }
    training.roles.emplace_back(name, role);
  }
}

std::string roles_map_of(const chat::training_options& training) {
  std::string text;
  for (const auto& [name, role] : training.roles) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, role);
  }
  return text;
}

// Returns the seconds from 1970 to a date, or nothing if it is no date.
std::optional<std::int64_t> seconds_to(const std::string& date) {
  const auto number = [&](std::size_t at, std::size_t digits) {
    int value = 0;
    for (std::size_t i = at; i < at + digits; ++i) {
      if (date[i] < '0' || date[i] > '9') return -1;
      value = 10 * value + (date[i] - '0');
    }
    return value;
  };
  if (date.size() != 10 || date[4] != '-' || date[7] != '-') return std::nullopt;
  const int year = number(0, 4);
  const int month = number(5, 2);
  const int day = number(8, 2);
  if (year < 1 || month < 1 || day < 1) return std::nullopt;
  const std::chrono::year_month_day found(std::chrono::year(year),
                                          std::chrono::month(static_cast<unsigned>(month)),
                                          std::chrono::day(static_cast<unsigned>(day)));
  if (!found.ok()) return std::nullopt;
  return std::chrono::sys_days(found).time_since_epoch().count() * seconds_of_day;
}

std::string today() {
  const std::time_t now = ::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return fmt::format("{:04}-{:02}-{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday);
}

std::optional<std::string> date_in(
    const std::vector<std::pair<std::string, std::string>>& settings) {
  for (const auto& [name, value] : settings) {
    if (name == date_flag) return value;
  }
  return std::nullopt;
}

// Returns the date of the run that this run may resume, from its journal or, if it is finished,
// from its P.meta.
std::optional<std::string> earlier_date(const run_options& run) {
  if (!run.resume) return std::nullopt;
  const auto journal_path = std::filesystem::path(run.output_prefix) += ".journal";
  if (const auto identity = journal::identity_in(journal_path)) return date_in(*identity);
  try {
    return date_in(read_metas(output_prefixes(run)).front().options);
  } catch (const error&) {  // no output, or none that can be resumed
    return std::nullopt;
  }
}

std::string text_of(const std::filesystem::path& path) {
  const io::file_mapping file(path);
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The sources of the templates that a flag names.
struct template_sources {
  struct source {
    std::string name;  ///< for messages
    std::string text;
  };
  source usual;
  std::optional<source> with_tools = std::nullopt;
};

template_sources find_templates(const std::string& asked, const tokenizer::chat_folder& folder,
                                const std::filesystem::path& model) {
  const auto source_of = [](const tokenizer::chat_folder::named_template& found) {
    return template_sources::source{found.name == "default"
                                        ? found.path.string()
                                        : fmt::format("{} ({})", found.path.string(), found.name),
                                    found.source};
  };
  if (asked == "tokenizer") {
    const auto* const usual = folder.find("default");
    if (usual == nullptr) {
      throw config_error(fmt::format(
          "--chat-template tokenizer: {} has no chat template; pass a file", model.string()));
    }
    template_sources found{source_of(*usual)};
    if (const auto* const tools = folder.find("tool_use")) found.with_tools = source_of(*tools);
    return found;
  }
  if (const auto* const named = folder.find(asked)) return {source_of(*named)};
  if (io::is_there(asked)) return {{asked, text_of(asked)}};
  std::string names;
  for (const auto& each : folder.templates) names += ", " + formats::in_quotes(each.name);
  throw config_error(fmt::format(
      "--chat-template {}: there is no such file, and {} {}", asked, model.string(),
      names.empty() ? "has no templates" : "has only the templates " + names.substr(2)));
}

const prompt_format& format_named(std::string_view name) {
  return *std::ranges::find(prompt_formats, name, &prompt_format::name);
}

}  // namespace

po::options_description conversation_group(bool with_preview) {
  const auto value = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description group("Conversations");
  auto add = group.add_options();
  add("messages-key", value("KEY"),
      "each line is a conversation: a list of messages with role and content (or from and value) "
      "under KEY, or prompt and completion, or instruction and output. Renders it with a chat "
      "template, and writes PREFIX_KEY_document.mask: which tokens a model learns to predict");
  add("tools-key", value("KEY"), "key of the tools of a conversation (default: tools)");
  add("chat-template", value("tokenizer|FILE|NAME"),
      "the chat template: the tokenizer's own (default), a file, or one of several that the "
      "tokenizer has");
  add("sft-tokenizer-prompt-format", value("NAME"),
      "as Megatron's SFTTokenizer: nemotron-h-aligned or nemotron-nano-v2, whose turns of the "
      "assistant are trained, or identity or default (the tokenizer's own template), of which all "
      "is trained");
  add("template-date", value("YYYY-MM-DD"),
      "the date, for templates that ask for it (default: the day on which the run began)");
  add("train-on", value("PARTS"),
      "the trained tokens: all, or the turns of the assistant (assistant) or the last of them "
      "(last), each with ,reasoning and ,tool_calls if these are trained, too (default: "
      "assistant,reasoning,tool_calls)");
  add("train-on-eot", value("turn|last|none"),
      "whether the tokens that end trained turns are trained: all, the last one, or none "
      "(default: turn)");
  add("roles-map", value("NAME=ROLE,..."),
      "other names of roles; human=user and gpt=assistant are known");
  add("reasoning-content", value("strip|inline|native"),
      "what becomes of reasoning in a field of its own: the template gets it (native, default), "
      "does not get it (strip), or gets it as <think> before the content (inline)");
  add("max-length", po::value<std::int64_t>()->value_name("L"),
      "the most tokens of a conversation, with its end-of-document token (default: no limit)");
  add("overlong", value("drop|truncate|error"),
      "what becomes of a longer conversation: it is dropped and counted, cut, or a bad record "
      "(default: error)");
  if (!with_preview) return group;
  add("preview", po::value<std::int64_t>()->value_name("LINE"),
      "print the conversation in line LINE of the inputs, counted from 1, with its trained tokens "
      "marked, and write nothing");
  return group;
}

std::optional<conversation_flags> conversation_flags_of(const po::variables_map& given) {
  if (given.count("messages-key") == 0) {
    for (const char* flag : own_flags) {
      if (given.count(flag) != 0) {
        throw usage_error(fmt::format("--{} requires --messages-key", flag));
      }
    }
    return std::nullopt;
  }
  for (const char* flag : {"json-keys", "text-key", "split-sentences"}) {
    if (given.count(flag) != 0) {
      throw usage_error(
          fmt::format("--messages-key and --{} exclude each other; pass one of them", flag));
    }
  }
  conversation_flags flags;
  chat::training_options& training = flags.training;
  training.messages_key = given["messages-key"].as<std::string>();
  with_value(given, "tools-key", [&](const std::string& key) { training.tools_key = key; });
  with_value(given, "chat-template", [&](const std::string& at) { flags.chat_template = at; });
  with_value(given, "sft-tokenizer-prompt-format", [&](const std::string& name) {
    for (const char* flag : {"chat-template", "train-on", "train-on-eot", "reasoning-content"}) {
      if (given.count(flag) == 0) continue;
      throw usage_error(fmt::format(
          "--sft-tokenizer-prompt-format and --{} exclude each other; pass one of them", flag));
    }
    if (std::ranges::find(prompt_formats, name, &prompt_format::name) == prompt_formats.end()) {
      throw usage_error(
          fmt::format("--sft-tokenizer-prompt-format {}: expected nemotron-h-aligned, "
                      "nemotron-nano-v2, identity or default",
                      name));
    }
    flags.prompt_format = name;
    training.turns = format_named(name).turns;
  });
  with_value(given, "template-date", [&](const std::string& date) {
    if (!seconds_to(date)) {
      throw usage_error(fmt::format("--template-date {}: expected a date as 2026-11-27", date));
    }
    flags.date = date;
  });
  with_value(given, "train-on", [&](const std::string& text) { take_train_on(text, training); });
  with_value(given, "train-on-eot", [&](const std::string& name) {
    training.ends = choose(ends_by_name, "train-on-eot", name);
  });
  with_value(given, "roles-map", [&](const std::string& text) { take_roles(text, training); });
  with_value(given, "reasoning-content", [&](const std::string& name) {
    training.reasoning_as = choose(reasoning_by_name, "reasoning-content", name);
  });
  with_value(given, "overlong", [&](const std::string& name) {
    flags.overlong = choose(overlong_by_name, "overlong", name);
  });
  if (given.count("max-length") != 0) {
    const auto most = given["max-length"].as<std::int64_t>();
    if (most < 2 || most > most_sequence_tokens) {
      throw usage_error(
          fmt::format("--max-length {}: expected 2 to {}", most, most_sequence_tokens));
    }
    flags.most_tokens = most;
  } else if (given.count("overlong") != 0) {
    throw usage_error("--overlong requires --max-length");
  }
  return flags;
}

void prepare_tokenizer(tokenizer::tokenizer_options& options) {
  if (options.type != "HuggingFaceTokenizer" || !io::is_folder(options.model)) {
    throw usage_error(
        "--messages-key requires --tokenizer-type HuggingFaceTokenizer, and its folder as "
        "--tokenizer-model: other files do not name the tokens that chat templates use");
  }
  using in_text = tokenizer::special_tokens_in_text;
  if (options.in_text != in_text::as_reference && options.in_text != in_text::allow) {
    throw usage_error(
        "--special-tokens-in-text: with --messages-key, expected allow, because the special "
        "tokens of a chat template stand in the text");
  }
  options.hf_include_special_tokens = false;
}

std::shared_ptr<const conversation_options> open_conversations(
    const conversation_flags& flags, const tokenizer::tokenizer_options& tokenizer,
    const run_options& run, bool may_ask_clock) {
  const tokenizer::chat_folder folder = tokenizer::read_chat_folder(tokenizer.model);
  const prompt_format* const format =
      flags.prompt_format ? &format_named(*flags.prompt_format) : nullptr;
  const template_sources sources =
      format != nullptr && !format->source.empty()
          ? template_sources{{"the prompt format " + *flags.prompt_format,
                              std::string(format->source)}}
          : find_templates(flags.chat_template, folder, tokenizer.model);
  const auto parse = [](const template_sources::source& from) {
    return chat::chat_template::parse(from.text, from.name);
  };
  auto out = std::make_shared<conversation_options>(
      conversation_options{.templates = {.usual = parse(sources.usual)},
                           .training = flags.training,
                           .variables = folder.named_tokens,
                           .most_tokens = flags.most_tokens,
                           .overlong = flags.overlong});
  out->training.special_tokens = folder.special_tokens;
  if (format != nullptr && format->turns == chat::trained_turns::assistant) {
    out->training.strict_turns = out->refuse_shared_tokens = true;
    out->untrained_tokens = format->untrained_tokens;
  }
  std::string digested = sources.usual.text;
  if (sources.with_tools) {
    out->templates.with_tools = parse(*sources.with_tools);
    digested.append(1, '\0').append(sources.with_tools->text);
  }
  const bool asks_date = digested.find("strftime_now") != digested.npos;
  for (const auto& [name, token] : folder.named_tokens) {
    for (const std::string& part : {name, token}) digested.append(1, '\0').append(part);
  }
  const auto set = [&](const char* name, std::string value) {
    out->settings.emplace_back(name, std::move(value));
  };
  set("--chat-template", formats::sha256_hex(digested));
  if (flags.prompt_format) set("--sft-tokenizer-prompt-format", *flags.prompt_format);
  if (asks_date) {
    auto date = flags.date;
    if (!date) date = earlier_date(run);
    if (!date && !may_ask_clock) {
      throw config_error(
          fmt::format("{} asks for the date; pass --template-date, so that all processes use the "
                      "same one",
                      sources.usual.name));
    }
    if (!date) date = today();
    out->date = seconds_to(*date);
    set(date_flag, *date);
  }
  set("--tools-key", flags.training.tools_key);
  set("--train-on", train_on_of(flags.training));
  set("--train-on-eot", name_in(ends_by_name, flags.training.ends));
  set("--roles-map", roles_map_of(flags.training));
  set("--reasoning-content", name_in(reasoning_by_name, flags.training.reasoning_as));
  set("--max-length", flags.most_tokens ? std::to_string(*flags.most_tokens) : "none");
  set("--overlong", name_in(overlong_by_name, flags.overlong));
  return out;
}

}  // namespace millrace::preprocess
