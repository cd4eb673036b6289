// SPDX-License-Identifier: Apache-2.0
#include "regex/pattern_tree.hpp"

#include <algorithm>
#include <utility>

#include "regex/pattern_reader.hpp"

namespace millrace::tokenizer::detail {
namespace {

using node_kind = pattern_node::kind;
using appetite = pattern_node::appetite;

constexpr std::size_t deepest = 100;        // nesting depth of groups
constexpr std::size_t most_sets = 2000;     // 136 KiB each
constexpr std::size_t most_repeats = 1000;  // largest bound in braces

struct options {
  bool ignores_case = false;
  bool dot_takes_newline = false;
};

class parser {
 public:
  explicit parser(std::string_view pattern) : in_(pattern) {}

  pattern_tree parse() {
    pattern_node root = alternation({}, 0);
    if (!in_.at_end()) in_.fail("a ')' without its '('");
    return {std::move(root), std::move(sets_)};
  }

 private:
  pattern_node alternation(options how, std::size_t depth) {
    if (depth > deepest) in_.fail("groups are nested too deeply");
    const std::size_t sets_before = sets_.size();
    pattern_node choice{.what = node_kind::alternation, .children = {}};
    choice.children.push_back(sequence(how, depth));
    while (in_.take("|")) {
      folded_ = 0;
      choice.children.push_back(sequence(how, depth));
    }
    if (choice.children.size() == 1) {
      pattern_node only = std::move(choice.children.front());
      return only;
    }
    return is_single(choice) ? joined(choice, sets_before) : choice;
  }

  // True if each alternative is one character. The alternation is then equivalent to one set.
  static bool is_single(const pattern_node& choice) {
    return std::ranges::all_of(choice.children, [](const pattern_node& child) {
      return child.what == node_kind::sequence && child.children.size() == 1 &&
             child.children.front().what == node_kind::characters;
    });
  }

  // Replaces the sets of all alternatives with their union. These sets are at the end of `sets_`,
  // from index `sets_before`.
  pattern_node joined(const pattern_node& choice, std::size_t sets_before) {
    code_point_set set;
    for (const pattern_node& child : choice.children) set.add(sets_[child.children.front().set]);
    sets_.erase(sets_.begin() + static_cast<std::ptrdiff_t>(sets_before), sets_.end());
    return set_node(std::move(set));
  }

  pattern_node sequence(options how, std::size_t depth) {
    pattern_node all{.what = node_kind::sequence, .children = {}};
    while (!in_.at_end() && !in_.sees("|") && !in_.sees(")")) {
      if (const auto changed = option_change(how)) {
        all.children.push_back(alternation(*changed, depth + 1));  // the rest of the group
        break;
      }
      pattern_node one = atom(how, depth);
      all.children.push_back(quantified(std::move(one)));
    }
    return all;
  }

  // Reads an option group such as (?i) or (?m-i), which changes options for the rest of the
  // enclosing group. If no such group follows, returns nullopt and keeps the read position.
  std::optional<options> option_change(options how) {
    const std::size_t begin = in_.offset();
    if (!in_.take("(?")) return std::nullopt;
    if (read_options(how) && in_.take(")")) return how;
    in_.go_to(begin);
    return std::nullopt;
  }

  bool read_options(options& how) {
    bool on = true;
    bool any = false;
    for (;; any = true) {
      if (in_.take("i")) {
        how.ignores_case = on;
      } else if (in_.take("m")) {
        how.dot_takes_newline = on;
      } else if (on && in_.take("-")) {
        on = false;
      } else {
        return any;
      }
    }
  }

  pattern_node atom(options how, std::size_t depth) {
    if (in_.take("(")) return group(how, depth);
    if (in_.take("[")) return set_node(read_class(in_, how.ignores_case));
    if (in_.take(".")) return dot(how);
    if (in_.take("^")) return {.what = node_kind::line_begin, .set = newline(), .children = {}};
    if (in_.take("$")) return {.what = node_kind::line_end, .set = newline(), .children = {}};
    if (in_.sees("*") || in_.sees("+") || in_.sees("?"))
      in_.fail("expected something to repeat before the quantifier");
    if (in_.take("\\")) return escaped(how);
    return literal(in_.next(), how);
  }

  pattern_node escaped(options how) {
    if (in_.take("A")) return {.what = node_kind::text_begin, .children = {}};
    if (in_.take("z")) return {.what = node_kind::text_end, .children = {}};
    if (in_.take("Z")) {
      return {.what = node_kind::text_end_or_last_newline, .set = newline(), .children = {}};
    }
    if (in_.take("b")) return word_edge(false);
    if (in_.take("B")) return word_edge(true);
    escape found = read_escape(in_, false);
    if (!found.is_set) return literal(found.point, how);
    return set_node(std::move(found.set));
  }

  pattern_node literal(std::uint32_t point, options how) {
    code_point_set set;
    set.add(point, point);
    if (how.ignores_case) {
      add_cases(in_, point, set);
      refuse_folded_pair(point);
    }
    const std::uint32_t folded = folded_;
    pattern_node node = set_node(std::move(set));
    folded_ = how.ignores_case ? folded : 0;
    return node;
  }

  // Refuses two letters that are the case folding of one character, such as `ss` of U+00DF. In
  // Oniguruma, these two letters also match that character.
  void refuse_folded_pair(std::uint32_t point) {
    const std::uint32_t lower = point | 0x20;
    const bool pair = (folded_ == 's' && (lower == 's' || lower == 't')) ||
                      (folded_ == 'f' && (lower == 'f' || lower == 'i' || lower == 'l'));
    if (pair) in_.fail("ss, st, ff, fi and fl under (?i) are not supported");
    folded_ = lower;
  }

  pattern_node dot(options how) {
    code_point_set set;
    if (!how.dot_takes_newline) set.add('\n', '\n');
    set.invert();
    return set_node(std::move(set));
  }

  pattern_node word_edge(bool negated) {
    const std::size_t words = number_of(code_point_set(reference_set::word));
    return {.what = node_kind::word_edge, .set = words, .negated = negated, .children = {}};
  }

  std::size_t newline() {
    code_point_set set;
    set.add('\n', '\n');
    return number_of(std::move(set));
  }

  pattern_node set_node(code_point_set set) {
    folded_ = 0;
    return {.what = node_kind::characters, .set = number_of(std::move(set)), .children = {}};
  }

  // Returns the index of `set` in sets_. Adds the set if it is not there.
  std::size_t number_of(code_point_set set) {
    const auto found = std::ranges::find(sets_, set);
    const auto index = static_cast<std::size_t>(found - sets_.begin());
    if (found == sets_.end()) {
      if (sets_.size() == most_sets) in_.fail("too many different characters and classes");
      sets_.push_back(std::move(set));
    }
    return index;
  }

  pattern_node group(options how, std::size_t depth) {
    const std::size_t begin = in_.offset() - 1;
    pattern_node node{.what = node_kind::nothing, .children = {}};
    if (in_.take("?")) node = group_kind(how, begin);
    pattern_node inner = alternation(how, depth + 1);
    if (!in_.take(")")) {
      in_.go_to(begin);
      in_.fail("a group without its closing parenthesis");
    }
    if (node.what == node_kind::nothing) return inner;
    if (node.what == node_kind::look_behind) {
      refuse_variable_length(inner, begin);
      if (inner.what == node_kind::alternation) {
        node.children = std::move(inner.children);
        return node;
      }
    }
    node.children.push_back(std::move(inner));
    return node;
  }

  pattern_node group_kind(options& how, std::size_t begin) {
    if (in_.take(":")) return {.what = node_kind::nothing, .children = {}};
    if (in_.take(">")) return {.what = node_kind::atomic, .children = {}};
    if (in_.take("=")) return {.what = node_kind::look_ahead, .children = {}};
    if (in_.take("!")) return {.what = node_kind::look_ahead, .negated = true, .children = {}};
    if (in_.take("<=")) return {.what = node_kind::look_behind, .children = {}};
    if (in_.take("<!")) return {.what = node_kind::look_behind, .negated = true, .children = {}};
    if (read_options(how) && in_.take(":")) return {.what = node_kind::nothing, .children = {}};
    in_.go_to(begin);
    in_.fail("this kind of group is not supported");
  }

  void refuse_variable_length(const pattern_node& inner, std::size_t begin) {
    const auto is_fixed = [](const pattern_node& node) { return length_of(node).is_fixed; };
    const bool fine = inner.what == node_kind::alternation
                          ? std::ranges::all_of(inner.children, is_fixed)
                          : is_fixed(inner);
    if (fine) return;
    in_.go_to(begin);
    in_.fail("look-behind of variable length is not supported");
  }

  // Reads {n}, {n,}, {,m} or {n,m}. If none of these follows, returns false: the brace is a
  // literal.
  bool read_bounds(std::size_t& min, std::size_t& max) {
    const std::size_t begin = in_.offset();
    if (!in_.take("{")) return false;
    const auto low = number();
    const bool has_comma = in_.take(",");
    const auto high = has_comma ? number() : low;
    if (!in_.take("}") || (!low && !high)) {
      in_.go_to(begin);
      return false;
    }
    min = low.value_or(0);
    max = high.value_or(pattern_node::unbounded);
    if (min > most_repeats || (high && max > most_repeats) || min > max) {
      in_.go_to(begin);
      in_.fail("these bounds of a repeat are not supported");
    }
    return true;
  }

  std::optional<std::size_t> number() {
    std::optional<std::size_t> value;
    while (!in_.at_end()) {
      const std::size_t before = in_.offset();
      const std::uint32_t c = in_.next();
      if (c < '0' || c > '9') {
        in_.go_to(before);
        break;
      }
      value = std::min(value.value_or(0) * 10 + (c - '0'), most_repeats + 1);
    }
    return value;
  }

  pattern_node quantified(pattern_node one) {
    std::size_t min = 0;
    std::size_t max = pattern_node::unbounded;
    const std::size_t begin = in_.offset();
    appetite mode = appetite::greedy;
    bool repeats_again = false;
    if (in_.take("?")) {
      max = 1;
      mode = suffix();
    } else if (in_.take("*")) {
      mode = suffix();
    } else if (in_.take("+")) {
      min = 1;
      mode = suffix();
    } else if (read_bounds(min, max)) {
      if (in_.take("?")) {
        if (min == max) in_.fail("{n}? is not supported");
        mode = appetite::lazy;
      } else {
        repeats_again = in_.take("+");
      }
    } else {
      return one;
    }
    folded_ = 0;
    refuse_odd_repeat(one, begin);
    refuse_counted_nothing(one, min, max);
    // For one character x, `x{1,m}+` tries the same lengths in the same order as `x+`.
    if (repeats_again && min == 1 && one.what == node_kind::characters) {
      return repeated(std::move(one), 1, pattern_node::unbounded, appetite::greedy);
    }
    pattern_node repeat = repeated(std::move(one), min, max, mode);
    if (!repeats_again) return repeat;
    return repeated(std::move(repeat), 1, pattern_node::unbounded, appetite::greedy);
  }

  // Refuses a loop with a count if its body can match the empty string. In Oniguruma, an empty
  // iteration can end such a loop before the loop reaches its count. Whether it does depends on how
  // the compiler unrolled the loop.
  void refuse_counted_nothing(const pattern_node& one, std::size_t min, std::size_t max) {
    const bool counted = min > 1 || (max > 1 && max != pattern_node::unbounded);
    if (counted && may_be_empty(one)) {
      in_.fail("a counted repeat of what may match nothing is not supported");
    }
  }

  static pattern_node repeated(pattern_node one, std::size_t min, std::size_t max, appetite mode) {
    pattern_node repeat{
        .what = node_kind::repeat, .min = min, .max = max, .mode = mode, .children = {}};
    repeat.children.push_back(std::move(one));
    return repeat;
  }

  appetite suffix() {
    if (in_.take("+")) return appetite::possessive;
    return in_.take("?") ? appetite::lazy : appetite::greedy;
  }

  void refuse_odd_repeat(const pattern_node& one, std::size_t begin) {
    std::size_t ignored = 0;
    const std::size_t behind = in_.offset();
    const bool stacked =
        in_.sees("?") || in_.sees("*") || in_.sees("+") || read_bounds(ignored, ignored);
    in_.go_to(behind);
    if (stacked) in_.fail("a quantifier after a quantifier is not supported");
    const bool repeatable = one.what == node_kind::characters || one.what == node_kind::sequence ||
                            one.what == node_kind::alternation || one.what == node_kind::atomic ||
                            one.what == node_kind::repeat;
    if (repeatable) return;
    in_.go_to(begin);
    in_.fail("repeating what matches no characters is not supported");
  }

  pattern_reader in_;
  std::vector<code_point_set> sets_;
  std::uint32_t folded_ = 0;  // the previous letter if it matches both cases, otherwise 0
};

}  // namespace

pattern_tree parse_pattern(std::string_view pattern) {
  return parser(pattern).parse();
}

}  // namespace millrace::tokenizer::detail
