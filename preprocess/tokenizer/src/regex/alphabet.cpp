// SPDX-License-Identifier: Apache-2.0
#include "regex/alphabet.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "regex/pattern_tree.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

// A range of code points that all belong to the same sets.
struct symbol_run {
  std::uint32_t begin;
  std::uint32_t symbol = 0;
};

namespace {

std::vector<symbol_run> runs_between(const std::vector<std::vector<std::uint32_t>>& bounds) {
  std::vector<std::uint32_t> begins{0};
  for (const auto& each : bounds) begins.insert(begins.end(), each.begin(), each.end());
  std::ranges::sort(begins);
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  std::vector<symbol_run> runs;
  runs.reserve(begins.size());
  for (const std::uint32_t begin : begins) runs.push_back({begin});
  return runs;
}

// Returns one value per run: true if the set with these bounds contains the run.
std::vector<bool> members_of(const std::vector<std::uint32_t>& bounds,
                             const std::vector<symbol_run>& runs) {
  std::vector<bool> members;
  std::size_t passed = 0;
  for (const symbol_run& each : runs) {
    if (passed < bounds.size() && bounds[passed] == each.begin) ++passed;
    members.push_back(passed % 2 != 0);
  }
  return members;
}

// If a symbol has both member runs and other runs, gives its member runs a new symbol.
// @param count  number of symbols before the call
// @return number of symbols after the call
std::uint32_t split_symbols(std::vector<symbol_run>& runs, const std::vector<bool>& members,
                            std::uint32_t count) {
  std::vector<bool> has_others(count);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!members[i]) has_others[runs[i].symbol] = true;
  }
  std::vector<std::uint32_t> moved(count);  // 0: not moved, because 0 is never a new symbol
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::uint32_t& symbol = runs[i].symbol;
    if (!members[i] || !has_others[symbol]) continue;
    if (moved[symbol] == 0) moved[symbol] = count++;
    symbol = moved[symbol];
  }
  return count;
}

}  // namespace

alphabet::alphabet(std::span<const code_point_set> sets) {
  std::vector<std::vector<std::uint32_t>> bounds;
  for (const code_point_set& set : sets) bounds.push_back(set.bounds());
  std::vector<symbol_run> runs = runs_between(bounds);
  std::uint32_t count = 1;
  for (const auto& each : bounds) {
    count = split_symbols(runs, members_of(each, runs), count);
    if (count <= most_symbols) continue;
    throw pattern_error(
        "the character classes of the regular expression divide Unicode into more than " +
        std::to_string(most_symbols) + " distinct sets, which is not supported");
  }
  for (const auto& each : bounds) {
    const std::vector<bool> in = members_of(each, runs);
    symbols& found = members_.emplace_back();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (in[i]) found.set(runs[i].symbol);
    }
  }
  make_pages(runs);
}

// Most pages (blocks of 256 code points) lie within one run. All such pages with the same symbol
// share one page.
void alphabet::make_pages(const std::vector<symbol_run>& runs) {
  std::array<std::optional<std::size_t>, most_symbols> plain;
  std::size_t at = 0;
  for (std::uint32_t begin = 0; begin < code_point_set::limit; begin += page_size) {
    if (at + 1 < runs.size() && runs[at + 1].begin == begin) ++at;
    const bool is_plain = at + 1 == runs.size() || runs[at + 1].begin >= begin + page_size;
    std::optional<std::size_t>& known = plain[runs[at].symbol];
    if (is_plain && known) {
      page_numbers_.push_back(static_cast<std::uint16_t>(*known));
      continue;
    }
    if (is_plain) known = pages_.size();
    page_numbers_.push_back(static_cast<std::uint16_t>(pages_.size()));
    page& made = pages_.emplace_back();
    for (std::uint32_t i = 0; i < page_size; ++i) {
      if (at + 1 < runs.size() && runs[at + 1].begin == begin + i) ++at;
      made[i] = static_cast<char>(runs[at].symbol);
    }
  }
}

char alphabet::symbol_of(std::uint32_t point) const noexcept {
  if (point >= code_point_set::limit) return 0;  // the text was not UTF-8
  return pages_[page_numbers_[point / page_size]][point % page_size];
}

void alphabet::translate(std::string_view text, std::string& out) const {
  out.resize(text.size());
  const page& first = pages_.front();
  char* to = out.data();
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      *to++ = first[byte];
      ++at;
      continue;
    }
    const code_point point = code_point_at(text, at);
    *to++ = symbol_of(point.value);
    at += point.size_bytes;
  }
  out.resize(static_cast<std::size_t>(to - out.data()));
}

namespace {

using node_kind = pattern_node::kind;
using appetite = pattern_node::appetite;

std::string byte_text(std::size_t symbol) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'\\', 'x', digits[symbol / 16], digits[symbol % 16]};
}

std::string group(std::string_view opening, std::string_view inside) {
  std::string text(opening);
  text += inside;
  return text += ')';
}

std::string class_text(const alphabet::symbols& members) {
  if (members.none()) return "[^\\x00-\\xff]";
  std::string ranges;
  for (std::size_t first = 0; first < members.size(); ++first) {
    if (!members[first]) continue;
    std::size_t last = first;
    while (last + 1 < members.size() && members[last + 1]) ++last;
    ranges += byte_text(first);
    if (last != first) (ranges += '-') += byte_text(last);
    first = last;
  }
  if (members.count() == 1) return ranges;
  return ranges.insert(0, 1, '[') += ']';
}

class writer {
 public:
  explicit writer(const alphabet& letters) : letters_(letters) {}

  // Returns the text of `node` in a form that can be part of a sequence.
  std::string text_of(const pattern_node& node) const {
    switch (node.what) {
      case node_kind::nothing:
        return {};
      case node_kind::characters:
        return class_of(node);
      case node_kind::sequence:
        return all_of(node, "");
      case node_kind::alternation:
        return group("(?:", all_of(node, "|"));
      case node_kind::repeat:
        return unit(node.children.front()) + quantifier(node);
      case node_kind::atomic:
        return group("(?>", all_of(node, "|"));
      case node_kind::look_ahead:
        return group(node.negated ? "(?!" : "(?=", all_of(node, "|"));
      case node_kind::look_behind:
        return group(node.negated ? "(?<!" : "(?<=", all_of(node, "|"));
      default:
        return place_of(node);
    }
  }

 private:
  std::string class_of(const pattern_node& node) const {
    return class_text(letters_.symbols_of(node.set));
  }

  std::string all_of(const pattern_node& node, std::string_view between) const {
    std::string all;
    bool is_first = true;
    for (const pattern_node& child : node.children) {
      if (!is_first) all += between;
      all += text_of(child);
      is_first = false;
    }
    return all;
  }

  // Returns the text of `node` in a form that a quantifier can follow.
  std::string unit(const pattern_node& node) const {
    const bool is_one = node.what == node_kind::characters || node.what == node_kind::alternation ||
                        node.what == node_kind::atomic;
    return is_one ? text_of(node) : group("(?:", text_of(node));
  }

  static std::string quantifier(const pattern_node& node) {
    std::string text = "{";
    text += std::to_string(node.min) += ",";
    if (node.max != pattern_node::unbounded) text += std::to_string(node.max);
    text += "}";
    if (node.mode == appetite::lazy) text += "?";
    if (node.mode == appetite::possessive) text += "+";
    return text;
  }

  // As in Oniguruma, `^` does not match after a newline at the end of the text, but `\Z` matches
  // before that newline.
  std::string place_of(const pattern_node& node) const {
    switch (node.what) {
      case node_kind::line_begin:
        return group("(?:", "\\A|" + group("(?<=", class_of(node)) + "(?!\\z)");
      case node_kind::line_end:
        return group("(?=", class_of(node) + "|\\z");
      case node_kind::text_begin:
        return "\\A";
      case node_kind::text_end:
        return "\\z";
      case node_kind::text_end_or_last_newline:
        return group("(?=", class_of(node) + "?\\z");
      default:
        return word_edge(class_of(node), node.negated);
    }
  }

  static std::string word_edge(const std::string& word, bool negated) {
    const std::string begin = group("(?<!", word) + group(negated ? "(?!" : "(?=", word);
    const std::string end = group("(?<=", word) + group(negated ? "(?=" : "(?!", word);
    return group("(?:", begin + "|" + end);
  }

  const alphabet& letters_;
};

}  // namespace

std::string symbol_pattern(const pattern_tree& tree, const alphabet& letters) {
  return writer(letters).text_of(tree.root);
}

}  // namespace millrace::tokenizer::detail
