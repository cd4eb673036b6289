// SPDX-License-Identifier: Apache-2.0
#include "show_tokens.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/grouped.hpp>
#include <millrace/error.hpp>

#include "inspect.hpp"
#include "run_flags.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

constexpr std::int64_t usual_tokens = 256;

show_form form_of(const command_line& line) {
  const auto said = line.find<std::string>("as");
  if (!said) return show_form::ids_and_text;
  if (*said == "ids") return show_form::ids;
  if (*said == "text") return show_form::text;
  if (*said == "aligned") return show_form::aligned;
  throw misuse(fmt::format("--as '{}': expected ids, text or aligned", *said), show_help);
}

}  // namespace

void show_options::add_flags(po::options_description& own) {
  auto add = own.add_options();
  for (const char* flag : {"from", "count", "tokens", "context"}) {
    add(flag, po::value<std::int64_t>());
  }
  add("all", po::bool_switch());
  add("as", po::value<std::string>());
}

show_options::show_options(const command_line& line)
    : from_(count_of(line, "from", 0, show_help)),
      context_(count_of(line, "context", 0, show_help)),
      form_(form_of(line)) {
  const auto tokens = count_of(line, "tokens", 0, show_help);
  const auto count = count_of(line, "count", 0, show_help);
  const bool all = line.values["all"].as<bool>();
  if (tokens && count) {
    throw misuse("--tokens is another name of --count; pass one of them", show_help);
  }
  if ((tokens || count) && all) {
    throw misuse(fmt::format("--{} and --all exclude each other; pass one of them",
                             tokens ? "tokens" : "count"),
                 show_help);
  }
  if (context_ && !from_) {
    throw misuse("--context requires --from: the token whose context to show", show_help);
  }
  count_ = all ? std::numeric_limits<std::int64_t>::max()
               : (tokens ? tokens : count).value_or(context_ ? 1 : usual_tokens);
}

token_window show_options::window_of(std::int64_t total, const std::string& whose) const {
  const std::int64_t from = from_.value_or(0);
  if (from > 0 && from >= total) {
    throw config_error(
        fmt::format("--from {}: expected a token of {}, which has {}", from, whose,
                    total == 0 ? std::string("none") : fmt::format("tokens 0 to {}", total - 1)));
  }
  token_window window;
  window.asked_first = from;
  window.asked_last = from + std::min(count_, total - from);
  const std::int64_t around = context_.value_or(0);
  window.first = std::max<std::int64_t>(0, from - std::min(around, from));
  window.last = window.asked_last + std::min(around, total - window.asked_last);
  return window;
}

std::string window_text(const token_window& window, std::int64_t total) {
  if (window.size() == total || window.size() == 0) return "";
  if (window.size() == 1) return fmt::format("token {} of {}", window.first, grouped(total));
  return fmt::format("tokens {} to {} of {}", window.first, window.last - 1, grouped(total));
}

std::string ranges_text(std::span<const std::int64_t> ascending) {
  std::string text;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ascending[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : " to ", ascending[last]);
    i = last + 1;
  }
  return text;
}

std::string shown_text(const tokenizer::tokenizer& with, std::span<const std::int64_t> ids) {
  std::string text = with.decode(ids);
  return command::stdout_is_terminal() ? command::for_terminal(text) : text;
}

std::vector<std::string> texts_of(const tokenizer::tokenizer& with,
                                  std::span<const std::int64_t> ids, std::int64_t first,
                                  std::int64_t last) {
  constexpr std::int64_t around = 16;
  const std::int64_t begin = std::max<std::int64_t>(0, first - around);
  const std::int64_t end = std::min(std::ssize(ids), last + around);
  auto texts = decode_each(
      with, ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
  return {std::make_move_iterator(texts.begin() + (first - begin)),
          std::make_move_iterator(texts.begin() + (last - begin))};
}

void token_table::token(std::int64_t at, std::string id, const std::optional<std::string>& text,
                        const std::optional<token_fields>& fields, const std::string& remark,
                        const std::optional<bool>& is_trained) {
  line next;
  next.cells = {std::to_string(at), std::move(id)};
  if (fields) {
    next.cells.insert(next.cells.end(),
                      {std::to_string(fields->label), fields->has_loss ? "1" : "0",
                       std::to_string(fields->position)});
    if (!fields->has_loss) next.color = command::ink::faint;
  }
  if (is_trained) {
    next.cells.emplace_back(*is_trained ? "1" : "0");
    if (!*is_trained) next.color = command::ink::faint;
  }
  if (text) next.text = command::escaped_text(*text);
  if (!remark.empty()) next.text += (next.text.empty() ? "" : "  ") + remark;
  next.asked = window_.has_context() && window_.asked_first <= at && at < window_.asked_last;
  if (next.asked) next.color = command::ink::strong;
  has_fields_ = has_fields_ || fields;
  has_marks_ = has_marks_ || is_trained;
  has_text_ = has_text_ || text;
  lines_.push_back(std::move(next));
}

std::string token_table::text(bool colors) const {
  std::vector<std::string> names = {"token", "id"};
  if (has_fields_) names.insert(names.end(), {"label", "loss", "position"});
  if (has_marks_) names.emplace_back("trained");
  std::vector<std::size_t> widths;
  widths.reserve(names.size());
  for (const std::string& name : names) widths.push_back(name.size());
  for (const line& each : lines_) {
    for (std::size_t i = 0; i < each.cells.size(); ++i) {
      widths[i] = std::max(widths[i], each.cells[i].size());
    }
  }
  const auto row = [&](const std::vector<std::string>& cells, const std::string& last, bool asked) {
    std::string out = asked ? ">" : " ";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      out += fmt::format(" {:>{}}", cells[i], widths[i]);
    }
    return last.empty() ? out : out + "  " + last;
  };
  std::string out = row(names, has_text_ ? "text" : "", false) + '\n';
  for (const line& each : lines_) {
    if (each.cells.empty()) {
      out += command::inked(command::ink::border, each.border, colors) + '\n';
    } else {
      out += command::inked(each.color, row(each.cells, each.text, each.asked), colors) + '\n';
    }
  }
  return out;
}

}  // namespace millrace::inspect
