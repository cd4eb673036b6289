// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "python_text.hpp"
#include "syntax.hpp"

namespace millrace::chat {

/// The variables of one call of a function: the template, or a macro.
struct activation {
  value* slots;
  activation* parent;  ///< of the function around it
};

struct macro_data {
  const node* definition;
  activation* around;
};

struct method_data {
  value self;
  method_code code;
};

/// The result of a lazy filter. It is computed when its first item is wanted, and is used up.
struct generator_data {
  const node* filter = nullptr;  ///< null once the items are known
  value input;
  std::span<const value> arguments = {};
  std::span<const value> items = {};
  std::size_t at = 0;
};

/// What a loop takes its items from.
struct item_source {
  std::span<const value> items = {};
  std::span<const dict_entry> entries = {};
  std::string_view text = {};
  generator_data* generator = nullptr;
  std::size_t at = 0;
};

struct loop_data {
  const node* definition = nullptr;
  item_source source;
  const node* test = nullptr;  ///< items for which this is false are skipped
  activation* around = nullptr;
  std::int64_t index0 = -1;
  std::int64_t length = -1;  ///< unknown if negative
  value before;
  value current;
  value after;
  bool has_after = false;
  bool has_changed = false;
  value changed;
};

/// Renders a template once.
class renderer {
 public:
  renderer(const chat_template::program& program, const value& variables,
           const render_limits& limits, rendered& out);

  void run();

 private:
  enum class flow { normal, break_loop, continue_loop };
  using arguments = std::span<const value>;
  struct named_argument {
    std::string_view name;
    value given;
  };

  [[noreturn]] void fail(const std::string& problem) const { throw value_problem(problem); }
  [[noreturn]] void fail_undefined(const value& of) const;
  void step() {
    if (++steps_ > limits_.steps) fail_steps();
  }
  [[noreturn]] void fail_steps() const;
  /// Counts work on this many bytes or items.
  void charge(std::size_t amount) {
    steps_ += amount / 64;
    if (steps_ > limits_.steps) fail_steps();
  }
  void check_stack() const;

  // Statements
  flow execute(const std::vector<node*>& body);
  flow execute(const node& n);
  flow loop(const node& n);
  void generation(const node& n);
  void set_block(const node& n);
  void enter(const frame_info& frame);
  void assign(const node& target, const value& to);
  void check_output() const;
  value& slot(const variable& place) {
    activation* a = now_;
    for (std::uint32_t i = 0; i < place.hops; ++i) a = a->parent;
    return a->slots[place.slot];
  }
  value resolve(std::string_view name) const;
  value capture(const std::vector<node*>& body);

  // Expressions
  value evaluate(const node& n);
  value evaluate_call(const node& n);
  arguments evaluate_all(const std::vector<node*>& nodes);
  value compare(const node& n);
  bool compare_once(compare_code code, const value& a, const value& b);
  bool contains(const value& container, const value& item);
  value arithmetic(node_kind kind, const value& a, const value& b);
  value add(const value& a, const value& b);
  value format(const value& pattern, const value& with);
  value repeat(const value& sequence, const value& times);
  value negate(const value& of);
  value slice(const value& of, const value& start, const value& stop, const value& step);
  value attribute(const value& of, const std::string_view& name, method_code code);
  value item(const value& of, const value& key);
  value item_by_path(const value& of, const value& path, const value& default_value);
  value loop_attribute(loop_data& of, const std::string_view& name);
  bool has_method(const value& of, method_code code) const;

  // Calls
  value call_macro(const macro_data& macro, arguments given, std::span<const named_argument> named);
  value call_function(function_code code, arguments given, std::span<const named_argument> named);
  value call_method(const value& self, method_code code, arguments given,
                    std::span<const named_argument> named);
  value call_string_method(const value& self, method_code code, arguments given);
  value split(const value& self, bool from_right, const value& separator, std::int64_t most);
  value call_loop_method(loop_data& of, method_code code, arguments given);
  value new_space(std::span<const named_argument> named, arguments given);
  void store(space_data& space, std::string_view name, const value& item);

  // Iteration
  item_source iterate(const value& of);
  bool next(item_source& source, value& item);
  bool pull(loop_data& loop, value& item);
  std::span<const value> all_items(const value& of);
  void compute(generator_data& of);
  std::size_t length(const value& of);

  // Filters and tests
  value apply_filter(const node& n, const value& input, arguments given);
  value apply_test(test_code code, const value& input, arguments given);
  bool test_result(test_code code, const value& input, arguments given);
  value to_integer(const value& of, const value& default_value);
  value to_real(const value& of, const value& default_value);
  value to_json(const value& of, arguments given);
  value dictsort(const value& of, arguments given);
  value sort(const value& of, arguments given);
  value join(const value& of, arguments given);
  value indent(const value& of, arguments given);
  value generator(const node& filter, const value& input, arguments given);
  value generator_of(std::span<const value> items);

  // Texts
  value own(std::string_view text) { return pool_.string(text); }
  value own_like(const value& model, std::string_view text) {
    return own(text).as_markup(model.is_markup());
  }
  /// str() of a value, which is not copied if it is a string.
  std::string_view text_of(const value& of);
  /// Like text_of(), but keeps the class Markup, as the function soft_str() of Markupsafe does.
  value soft(const value& of);
  std::string_view string_argument(const value& of, const char* what) const;
  std::int64_t integer_argument(const value& of, const char* what) const;
  value escaped(const value& of);

  const chat_template::program& program_;
  const value& variables_;
  const render_limits& limits_;
  rendered& out_;
  value_pool pool_;
  activation root_{};
  activation* now_ = &root_;
  std::string* sink_;
  std::deque<std::string> captures_;
  std::size_t capture_depth_ = 0;
  std::size_t captured_blocks_ = 0;  // captures and generation blocks around the current statement
  std::size_t emitted_ = 0;          // bytes of the text before the outermost of them
  value block_input_;                // of the filters of a block set
  std::uint64_t steps_ = 0;
  mutable std::uint32_t line_ = 1;
  std::uintptr_t stack_ = 0;
};

/// Whether a parameter or an argument was not given.
inline bool is_missing(const value& of) {
  return of.is(value_kind::undefined) && of.tag() == 1;
}
inline value missing() {
  return value(value_kind::undefined, nullptr, 1);
}
inline value undefined_value(const std::string_view* name) {
  return value(value_kind::undefined, name, 0);
}

}  // namespace millrace::chat
