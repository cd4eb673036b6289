// SPDX-License-Identifier: Apache-2.0
#include "regex/symbol_pattern.hpp"

#include <cstddef>
#include <string_view>

namespace millrace::tokenizer::detail {
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
