// SPDX-License-Identifier: Apache-2.0
#include "regex/regex.hpp"

#include <string>
#include <unordered_set>
#include <utility>

#include "regex/parse_pattern.hpp"
#include "unicode/append_code_point.hpp"

namespace millrace::tokenizer::detail {
namespace {

using code = instruction::code;
using appetite = pattern_node::appetite;

const code_point_set& word_characters() {
  static const code_point_set set(reference_set::word);
  return set;
}

bool is_word_at(std::string_view text, std::size_t at) noexcept {
  return at < text.size() && word_characters().contains(code_point_at(text, at).value);
}

bool holds(const instruction& step, std::string_view text, std::size_t place) {
  const std::size_t size = text.size();
  switch (step.what) {
    case code::line_begin:
      // A newline at the end of the text begins no line.
      return place == 0 || (text[place - 1] == '\n' && place != size);
    case code::line_end:
      return place == size || text[place] == '\n';
    case code::text_begin:
      return place == 0;
    case code::text_end:
      return place == size;
    case code::text_end_or_last_newline:
      return place == size || (place + 1 == size && text[place] == '\n');
    default: {
      const bool before = place > 0 && is_word_at(text, code_point_before(text, place));
      return (before != is_word_at(text, place)) != step.negated;
    }
  }
}

}  // namespace

/// One attempt at one place: what lies on the stack of choices above `base_` is its own.
class regex::machine {
 public:
  machine(const regex& owner, std::string_view text, scratch& memory)
      : owner_(owner), text_(text), memory_(memory), base_(memory.choices.size()) {}

  // End of the match of the steps from `step` on, at `place`.
  std::optional<std::size_t> run(std::size_t step, std::size_t place) {
    step_ = step;
    place_ = place;
    for (;;) {
      const instruction& now = owner_.program_.steps[step_];
      if (now.what == code::succeed) {
        memory_.choices.resize(base_);
        return place_;
      }
      if (!obey(now) && !retreat()) return std::nullopt;
    }
  }

 private:
  using choice = scratch::choice;

  bool takes(std::size_t set, std::size_t& place) const noexcept {
    if (place == text_.size()) return false;
    const code_point point = code_point_at(text_, place);
    if (!owner_.program_.sets[set].contains(point.value)) return false;
    place += point.size_bytes;
    return true;
  }

  bool obey(const instruction& now) {
    switch (now.what) {
      case code::take:
        ++step_;
        return takes(now.set, place_);
      case code::take_run:
        return take_run(now);
      case code::fork:
        return fork(now);
      case code::fork_late:
        if (was_here()) return false;
        memory_.choices.push_back({step_ + 1, place_, 0, choice::kind::fork});
        step_ = now.next;
        return true;
      case code::go:
        step_ = now.next;
        return true;
      case code::mark:
        memory_.choices.push_back({now.slot, memory_.slots[now.slot], 0, choice::kind::slot});
        memory_.slots[now.slot] = place_;
        ++step_;
        return true;
      case code::leave_empty:
        step_ = memory_.slots[now.slot] == place_ ? now.next : step_ + 1;
        return true;
      case code::atomic:
        return enclosed(now);
      case code::look_ahead:
        return look_ahead(now);
      case code::look_behind:
        return look_behind(now);
      default:
        ++step_;
        return holds(now, text_, place_);
    }
  }

  // Once an attempt has gone back very often: whether it has been at this fork before, in the same
  // state. Then all that follows has failed already, so that time stays bounded by the number of
  // states instead of the number of ways to reach them.
  bool was_here() {
    if (retreats_ < many_retreats) return false;
    std::string state(reinterpret_cast<const char*>(&step_), sizeof step_);
    state.append(reinterpret_cast<const char*>(&place_), sizeof place_);
    for (const std::size_t slot : memory_.slots) {
      state.append(reinterpret_cast<const char*>(&slot), sizeof slot);
    }
    return !seen_.insert(std::move(state)).second;
  }

  bool fork(const instruction& now) {
    if (was_here()) return false;
    std::size_t ignored = place_;
    if (now.set != instruction::no_set && !takes(now.set, ignored)) {
      step_ = now.next;
      return true;
    }
    memory_.choices.push_back({now.next, place_, 0, choice::kind::fork});
    ++step_;
    return true;
  }

  bool take_run(const instruction& now) {
    std::size_t count = 0;
    std::size_t least = place_;
    while (count < now.max && takes(now.set, place_)) {
      if (++count == now.min) least = place_;
    }
    if (count < now.min) return false;
    ++step_;
    if (now.mode == appetite::greedy && least < place_) {
      memory_.choices.push_back({step_, place_, least, choice::kind::run});
    }
    return true;
  }

  // Slots of loops inside and outside are different ones, so that the inner run may use them all.
  std::optional<std::size_t> run_inside(std::size_t step, std::size_t place) {
    return machine(owner_, text_, memory_).run(step, place);
  }

  bool enclosed(const instruction& now) {
    const auto end = run_inside(step_ + 1, place_);
    if (!end) return false;
    place_ = *end;
    step_ = now.next;
    return true;
  }

  bool look_ahead(const instruction& now) {
    const bool found = run_inside(step_ + 1, place_).has_value();
    step_ = now.next;
    return found != now.negated;
  }

  bool look_behind(const instruction& first) {
    bool found = false;
    for (std::size_t at = step_; !found && at != instruction::no_set;) {
      const instruction& now = owner_.program_.steps[at];
      std::size_t place = place_;
      std::size_t left = now.min;
      for (; left > 0 && place > 0; --left) place = code_point_before(text_, place);
      found = left == 0 && run_inside(at + 1, place).has_value();
      at = now.set;
    }
    step_ = first.next;
    return found != first.negated;
  }

  // Back to the last choice that is left, or false.
  bool retreat() {
    auto& choices = memory_.choices;
    ++retreats_;
    while (choices.size() > base_) {
      choice& last = choices.back();
      if (last.what == choice::kind::slot) {
        memory_.slots[last.step] = last.place;
        choices.pop_back();
        continue;
      }
      step_ = last.step;
      if (last.what == choice::kind::fork) {
        place_ = last.place;
        choices.pop_back();
        return true;
      }
      last.place = code_point_before(text_, last.place);
      place_ = last.place;
      if (last.place <= last.least) choices.pop_back();
      return true;
    }
    return false;
  }

  const regex& owner_;
  std::string_view text_;
  scratch& memory_;
  const std::size_t base_;
  std::size_t step_ = 0;
  std::size_t place_ = 0;

  static constexpr std::size_t many_retreats = 20000;
  std::size_t retreats_ = 0;
  std::unordered_set<std::string> seen_;
};

regex::regex(std::string_view pattern) : may_match_empty_(false) {
  pattern_tree tree = parse_pattern(pattern);
  may_match_empty_ = may_be_empty(tree.root);
  program_ = compile(std::move(tree));
}

std::optional<regex::match> regex::find(std::string_view text, std::size_t from,
                                        scratch& memory) const {
  memory.slots.resize(program_.slot_count);
  const bool knows_first = program_.first_set != instruction::no_set;
  for (std::size_t place = from; place <= text.size();) {
    if (place == text.size() && knows_first) break;
    std::size_t size = 1;
    bool may_begin = true;
    if (place < text.size()) {
      const code_point point = code_point_at(text, place);
      size = point.size_bytes;
      may_begin = !knows_first || program_.sets[program_.first_set].contains(point.value);
    }
    if (may_begin) {
      memory.choices.clear();
      if (const auto end = machine(*this, text, memory).run(0, place)) return match{place, *end};
    }
    place += size;
  }
  return std::nullopt;
}

}  // namespace millrace::tokenizer::detail
