// SPDX-License-Identifier: Apache-2.0
#include "regex/program.hpp"

#include <algorithm>
#include <utility>

namespace millrace::tokenizer::detail {
namespace {

using kind = pattern_node::kind;
using appetite = pattern_node::appetite;
using code = instruction::code;

constexpr std::size_t most_steps = 20000;

class compiler {
 public:
  explicit compiler(pattern_tree tree) : tree_(std::move(tree)) {}

  program compile() {
    out_.first_set = first_of(tree_.root);
    emit(tree_.root);
    add({.what = code::succeed});
    out_.sets = std::move(tree_.sets);
    return std::move(out_);
  }

 private:
  std::size_t add(instruction step) {
    if (out_.steps.size() == most_steps) {
      throw pattern_error(0, "the regular expression is too large");
    }
    out_.steps.push_back(step);
    return out_.steps.size() - 1;
  }
  std::size_t here() const noexcept { return out_.steps.size(); }
  void land(std::size_t step) noexcept { out_.steps[step].next = here(); }

  // Number of the set of characters that a match of `node` begins with.
  std::size_t first_of(const pattern_node& node) {
    if (may_be_empty(node)) return instruction::no_set;
    code_point_set first;
    add_first(tree_, node, first);
    const auto found = std::ranges::find(tree_.sets, first);
    const auto index = static_cast<std::size_t>(found - tree_.sets.begin());
    if (found == tree_.sets.end()) tree_.sets.push_back(std::move(first));
    return index;
  }

  void emit(const pattern_node& node) {
    switch (node.what) {
      case kind::nothing:
        return;
      case kind::characters:
        add({.what = code::take, .set = node.set});
        return;
      case kind::sequence:
        for (const pattern_node& child : node.children) emit(child);
        return;
      case kind::alternation:
        return emit_alternation(node);
      case kind::repeat:
        return emit_repeat(node);
      case kind::atomic:
        return emit_enclosed(code::atomic, node);
      case kind::look_ahead:
        return emit_enclosed(code::look_ahead, node);
      case kind::look_behind:
        return emit_look_behind(node);
      default:
        add({.what = code_of(node.what), .negated = node.negated});
    }
  }

  static code code_of(kind what) noexcept {
    switch (what) {
      case kind::line_begin:
        return code::line_begin;
      case kind::line_end:
        return code::line_end;
      case kind::text_begin:
        return code::text_begin;
      case kind::text_end:
        return code::text_end;
      case kind::text_end_or_last_newline:
        return code::text_end_or_last_newline;
      default:
        return code::word_edge;
    }
  }

  void emit_alternation(const pattern_node& node) {
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i + 1 < node.children.size(); ++i) {
      const std::size_t fork = add({.what = code::fork, .set = first_of(node.children[i])});
      emit(node.children[i]);
      ends.push_back(add({.what = code::go}));
      land(fork);
    }
    emit(node.children.back());
    for (const std::size_t end : ends) land(end);
  }

  void emit_enclosed(code what, const pattern_node& node) {
    const std::size_t begin = add({.what = what, .negated = node.negated});
    for (const pattern_node& child : node.children) emit(child);
    add({.what = code::succeed});
    land(begin);
  }

  // One step for each alternative, since each goes back by its own length.
  void emit_look_behind(const pattern_node& node) {
    std::vector<std::size_t> begins;
    for (const pattern_node& child : node.children) {
      if (!begins.empty()) out_.steps[begins.back()].set = here();
      begins.push_back(
          add({.what = code::look_behind, .negated = node.negated, .min = length_of(child).count}));
      emit(child);
      add({.what = code::succeed});
    }
    for (const std::size_t begin : begins) land(begin);
  }

  void emit_repeat(const pattern_node& node) {
    const pattern_node& child = node.children.front();
    if (child.what == kind::characters && node.mode != appetite::lazy) {
      add({.what = code::take_run,
           .mode = node.mode,
           .set = child.set,
           .min = node.min,
           .max = node.max});
      return;
    }
    if (node.mode != appetite::possessive) return emit_loop(node);
    const std::size_t begin = add({.what = code::atomic});
    emit_loop(node);
    add({.what = code::succeed});
    land(begin);
  }

  void emit_loop(const pattern_node& node) {
    const pattern_node& child = node.children.front();
    for (std::size_t i = 0; i < node.min; ++i) emit(child);
    const code fork = node.mode == appetite::lazy ? code::fork_late : code::fork;
    const std::size_t first = first_of(child);
    if (node.max == pattern_node::unbounded) {
      const std::size_t begin = add({.what = fork, .set = first});
      emit_turn(child, begin);
      land(begin);
      return;
    }
    std::vector<std::size_t> forks;
    for (std::size_t i = node.min; i < node.max; ++i) {
      forks.push_back(add({.what = fork, .set = first}));
      emit(child);
    }
    for (const std::size_t step : forks) land(step);
  }

  // A turn that takes nothing is the last one.
  void emit_turn(const pattern_node& child, std::size_t begin) {
    if (!may_be_empty(child)) {
      emit(child);
      add({.what = code::go, .next = begin});
      return;
    }
    const std::size_t slot = out_.slot_count++;
    add({.what = code::mark, .slot = slot});
    emit(child);
    const std::size_t leave = add({.what = code::leave_empty, .slot = slot});
    add({.what = code::go, .next = begin});
    land(leave);
  }

  pattern_tree tree_;
  program out_;
};

}  // namespace

program compile(pattern_tree tree) {
  return compiler(std::move(tree)).compile();
}

}  // namespace millrace::tokenizer::detail
