// SPDX-License-Identifier: Apache-2.0
#include "renderer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <ctime>
#include <utility>
#include <vector>

namespace millrace::chat {
namespace {

// Bytes of stack that one render may use. Threads of programs have 8 MiB, those of some libraries
// less.
constexpr std::uintptr_t stack_bytes = std::uintptr_t{384} << 10;

constexpr std::pair<std::string_view, function_code> functions[] = {
    {"raise_exception", function_code::raise_exception},
    {"namespace", function_code::space},
    {"range", function_code::range},
    {"strftime_now", function_code::strftime_now},
    {"dict", function_code::dict},
};

std::uintptr_t stack_place() {
  return std::bit_cast<std::uintptr_t>(__builtin_frame_address(0));
}

}  // namespace

renderer::renderer(const chat_template::program& program, const value& variables,
                   const render_limits& limits, rendered& out)
    : program_(program),
      variables_(variables),
      limits_(limits),
      out_(out),
      pool_(limits.memory_bytes),
      sink_(&out.text) {}

void renderer::run() {
  stack_ = stack_place();
  out_.text.clear();
  out_.generation.clear();
  try {
    if (!variables_.is(value_kind::dict)) fail("the variables must be a dict");
    root_.slots = pool_.allocate_array<value>(program_.slots);
    std::uninitialized_fill_n(root_.slots, program_.slots, missing());
    enter(program_.frame);
    execute(program_.body);
  } catch (const value_problem& problem) {
    throw template_error(program_.name, line_, problem.what());
  } catch (const template_error&) {
    throw;
  } catch (const error& problem) {  // the limit of the pool
    throw template_error(program_.name, line_, problem.what());
  }
}

void renderer::fail_undefined(const value& of) const {
  const auto* name = static_cast<const std::string_view*>(of.object());
  fail(name == nullptr ? "a value is undefined" : "'" + std::string(*name) + "' is undefined");
}

void renderer::fail_steps() const {
  fail("the template takes more than " + std::to_string(limits_.steps) + " steps, the limit");
}

void renderer::check_stack() const {
  const std::uintptr_t here = stack_place();
  if ((here > stack_ ? here - stack_ : stack_ - here) > stack_bytes) {
    fail("macros or expressions are nested too deeply");
  }
}

void renderer::check_output() const {
  if (sink_->size() > limits_.output_bytes) {
    fail("the text is longer than " + std::to_string(limits_.output_bytes) + " bytes, the limit");
  }
}

// --- Statements ------------------------------------------------------------------------------

renderer::flow renderer::execute(const std::vector<node*>& body) {
  for (const node* n : body) {
    if (const flow after = execute(*n); after != flow::normal) return after;
  }
  return flow::normal;
}

renderer::flow renderer::execute(const node& n) {
  step();
  switch (n.kind) {
    case node_kind::text:
      sink_->append(n.constant.text());
      check_output();
      return flow::normal;
    case node_kind::print: {
      const value v = evaluate(*n.a);
      line_ = n.line;
      append_text(v, *sink_);
      check_output();
      return flow::normal;
    }
    case node_kind::set: {
      const value v = evaluate(*n.b);
      line_ = n.line;
      assign(*n.a, v);
      return flow::normal;
    }
    case node_kind::set_block:
      set_block(n);
      return flow::normal;
    case node_kind::choice:
      for (std::size_t i = 0; i < n.items.size(); ++i) {
        if (n.items[i] == nullptr || truth(evaluate(*n.items[i]))) {
          check_stack();
          return execute(n.blocks[i]);
        }
      }
      return flow::normal;
    case node_kind::for_loop:
      return loop(n);
    case node_kind::macro: {
      auto* made =
          new (pool_.allocate(sizeof(macro_data), alignof(macro_data))) macro_data{&n, now_};
      slot(n.place) = value(value_kind::macro, made);
      return flow::normal;
    }
    case node_kind::generation:
      generation(n);
      return flow::normal;
    case node_kind::break_loop:
      return flow::break_loop;
    case node_kind::continue_loop:
      return flow::continue_loop;
    default:
      break;
  }
  fail("an expression in the place of a statement");
}

void renderer::enter(const frame_info& frame) {
  for (const frame_load& load : frame.loads) {
    value& to = now_->slots[load.slot];
    switch (load.from) {
      case frame_load::way::missing:
        to = missing();
        break;
      case frame_load::way::alias:
        to = slot(load.outer);
        break;
      case frame_load::way::resolve:
        to = resolve(load.name);
        break;
    }
  }
}

value renderer::resolve(std::string_view name) const {
  if (const value* input = variables_.find(name)) return *input;
  for (const auto& [known, code] : functions) {
    if (known == name)
      return value(value_kind::function, nullptr, static_cast<std::uint32_t>(code));
  }
  return missing();
}

void renderer::assign(const node& target, const value& to) {
  switch (target.kind) {
    case node_kind::name:
      slot(target.place) = to;
      return;
    case node_kind::space_name: {
      const value& space = slot(target.a->place);
      if (!space.is(value_kind::space)) {
        fail("cannot assign an attribute of " + std::string(target.a->text) +
             ", which is not a namespace");
      }
      auto* data = const_cast<space_data*>(static_cast<const space_data*>(space.object()));
      store(*data, target.text, to);
      return;
    }
    default:
      break;
  }
  if (to.is(value_kind::generator) || to.is(value_kind::string) || to.is(value_kind::dict) ||
      to.is(value_kind::undefined) || to.is(value_kind::list) || to.is(value_kind::tuple) ||
      to.is(value_kind::range) || to.is(value_kind::view)) {
    const auto items = all_items(to);
    if (items.size() != target.items.size()) {
      fail("expected " + std::to_string(target.items.size()) + " values to unpack, found " +
           std::to_string(items.size()));
    }
    for (std::size_t i = 0; i < items.size(); ++i) assign(*target.items[i], items[i]);
    return;
  }
  fail(std::string("cannot unpack a value of type ") + type_name(to));
}

void renderer::store(space_data& space, std::string_view name, const value& item) {
  for (std::uint32_t i = 0; i < space.size; ++i) {
    if (space.entries[i].key.text() == name) {
      space.entries[i].item = item;
      return;
    }
  }
  if (space.size == space.capacity) {
    const std::uint32_t capacity = std::max(8U, space.capacity * 2);
    auto* more = pool_.allocate_array<dict_entry>(capacity);
    std::uninitialized_copy_n(space.entries, space.size, more);
    space.entries = more;
    space.capacity = capacity;
  }
  new (space.entries + space.size) dict_entry{value(name), item};
  ++space.size;
}

renderer::flow renderer::loop(const node& n) {
  const value over = evaluate(*n.b);
  check_stack();
  line_ = n.line;
  // A template can keep `loop` in a namespace, so it lives as long as the other values.
  loop_data local;
  loop_data* data = &local;
  if (n.uses_loop) data = new (pool_.allocate(sizeof(loop_data), alignof(loop_data))) loop_data;
  data->definition = &n;
  data->source = iterate(over);
  data->test = n.c;
  data->around = now_;
  if (n.c == nullptr && !over.is(value_kind::generator)) {
    data->length = static_cast<std::int64_t>(length(over));
  }
  bool run_else = true;
  flow after = flow::normal;
  for (;;) {
    value current;
    if (data->has_after) {
      current = data->after;
      data->has_after = false;
    } else if (!pull(*data, current)) {
      break;
    }
    step();
    ++data->index0;
    data->before = data->current;
    data->current = current;
    enter(n.frame);
    if (n.uses_loop) slot(n.loop) = value(value_kind::loop, data);
    line_ = n.line;
    assign(*n.a, current);
    after = execute(n.blocks[0]);
    if (after == flow::break_loop) break;
    if (after == flow::continue_loop) continue;
    run_else = false;  // as in Jinja, an iteration that `continue` ended does not count
  }
  if (run_else && !n.blocks[1].empty()) {
    enter(n.else_frame);
    return execute(n.blocks[1]);
  }
  return flow::normal;
}

bool renderer::pull(loop_data& loop, value& item) {
  while (next(loop.source, item)) {
    if (loop.test == nullptr) return true;
    step();
    activation* before = std::exchange(now_, loop.around);
    enter(loop.definition->test_frame);
    assign(*loop.definition->others[0], item);
    const bool wanted = truth(evaluate(*loop.test));
    now_ = before;
    if (wanted) return true;
  }
  return false;
}

value renderer::capture(const std::vector<node*>& body) {
  check_stack();
  if (captured_blocks_++ == 0) emitted_ = sink_->size();
  if (captures_.size() == capture_depth_) captures_.emplace_back();
  std::string& text = captures_[capture_depth_++];
  text.clear();
  std::string* before = std::exchange(sink_, &text);
  execute(body);
  sink_ = before;
  --capture_depth_;
  --captured_blocks_;
  return own(text);
}

void renderer::generation(const node& n) {
  check_stack();
  if (captured_blocks_++ == 0) emitted_ = sink_->size();
  const std::size_t begin = sink_->size();
  enter(n.frame);
  execute(n.blocks[0]);
  out_.generation.push_back({emitted_, emitted_ + (sink_->size() - begin)});
  --captured_blocks_;
}

void renderer::set_block(const node& n) {
  enter(n.frame);
  value text;
  {
    check_stack();
    if (captured_blocks_++ == 0) emitted_ = sink_->size();
    if (captures_.size() == capture_depth_) captures_.emplace_back();
    std::string& buffer = captures_[capture_depth_++];
    buffer.clear();
    std::string* before = std::exchange(sink_, &buffer);
    const flow after = execute(n.blocks[0]);
    sink_ = before;
    --capture_depth_;
    --captured_blocks_;
    if (after != flow::normal) fail("break and continue in a block set are not supported");
    text = own(buffer);
  }
  if (n.b != nullptr) {
    block_input_ = text;
    text = evaluate(*n.b);
  }
  line_ = n.line;
  assign(*n.a, text);
}

// --- Expressions -----------------------------------------------------------------------------

renderer::arguments renderer::evaluate_all(const std::vector<node*>& nodes) {
  if (nodes.empty()) return {};
  auto* made = pool_.allocate_array<value>(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    new (made + i) value(nodes[i] == nullptr ? missing() : evaluate(*nodes[i]));
  }
  return {made, nodes.size()};
}

value renderer::evaluate(const node& n) {
  step();
  switch (n.kind) {
    case node_kind::constant:
      return n.constant;
    case node_kind::name: {
      const value v = slot(n.place);
      return is_missing(v) ? undefined_value(&n.text) : v;
    }
    default:
      break;
  }
  check_stack();
  switch (n.kind) {
    case node_kind::list:
      return value(value_kind::list, evaluate_all(n.items));
    case node_kind::tuple:
      return value(value_kind::tuple, evaluate_all(n.items));
    case node_kind::dict: {
      const arguments all = evaluate_all(n.items);
      std::vector<dict_entry> entries;
      for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
        line_ = n.line;
        check_hashable(all[i]);
        entries.push_back({all[i], all[i + 1]});
      }
      return pool_.dict(entries);
    }
    case node_kind::attribute: {
      const value of = evaluate(*n.a);
      line_ = n.line;
      return attribute(of, n.text, static_cast<method_code>(n.code));
    }
    case node_kind::item: {
      const value of = evaluate(*n.a);
      const value key = evaluate(*n.b);
      line_ = n.line;
      value found = item(of, key);
      if (found.is(value_kind::undefined) && n.b->kind == node_kind::constant && key.is_string()) {
        // Names the key in messages. The string_view must outlive the value.
        auto* name = new (pool_.allocate(sizeof(std::string_view), alignof(std::string_view)))
            std::string_view(key.text());
        if (found.object() == nullptr) found = undefined_value(name);
      }
      return found;
    }
    case node_kind::slice: {
      const value of = evaluate(*n.a);
      const arguments bounds = evaluate_all(n.items);
      line_ = n.line;
      const auto bound = [&](std::size_t i) { return is_missing(bounds[i]) ? value() : bounds[i]; };
      return slice(of, bound(0), bound(1), bound(2));
    }
    case node_kind::call:
      return evaluate_call(n);
    case node_kind::filter: {
      const value input = n.a == nullptr ? block_input_ : evaluate(*n.a);
      const arguments given = evaluate_all(n.b == nullptr ? n.items : n.b->items);
      if (n.b != nullptr && !n.items.empty()) {
        // The name of the attribute, before the arguments of the test.
        auto* all = pool_.allocate_array<value>(given.size() + 1);
        new (all) value(evaluate(*n.items[0]));
        std::uninitialized_copy(given.begin(), given.end(), all + 1);
        line_ = n.line;
        return apply_filter(n, input, {all, given.size() + 1});
      }
      line_ = n.line;
      return apply_filter(n, input, given);
    }
    case node_kind::test: {
      const value input = evaluate(*n.a);
      const arguments given = evaluate_all(n.items);
      line_ = n.line;
      return apply_test(static_cast<test_code>(n.code), input, given);
    }
    case node_kind::logical_not:
      return value(!truth(evaluate(*n.a)));
    case node_kind::negative:
    case node_kind::positive: {
      const value of = evaluate(*n.a);
      line_ = n.line;
      if (of.is(value_kind::undefined)) fail_undefined(of);
      if (!is_number(of)) fail(std::string("a sign before a value of type ") + type_name(of));
      if (n.kind == node_kind::negative) return negate(of);
      return of.is(value_kind::boolean) ? value(of.integer()) : of;
    }
    case node_kind::logical_and: {
      const value left = evaluate(*n.a);
      return truth(left) ? evaluate(*n.b) : left;
    }
    case node_kind::logical_or: {
      const value left = evaluate(*n.a);
      return truth(left) ? left : evaluate(*n.b);
    }
    case node_kind::add: {
      const value left = evaluate(*n.a);
      const value right = evaluate(*n.b);
      line_ = n.line;
      return add(left, right);
    }
    case node_kind::subtract:
    case node_kind::multiply:
    case node_kind::divide:
    case node_kind::floor_divide:
    case node_kind::modulo:
    case node_kind::power: {
      const value left = evaluate(*n.a);
      const value right = evaluate(*n.b);
      line_ = n.line;
      return arithmetic(n.kind, left, right);
    }
    case node_kind::concat: {
      const arguments parts = evaluate_all(n.items);
      line_ = n.line;
      std::string_view text;
      for (const value& part : parts) text = pool_.concatenate(text, text_of(part));
      charge(text.size());
      return value(text);
    }
    case node_kind::compare:
      return compare(n);
    case node_kind::conditional: {
      if (truth(evaluate(*n.b))) return evaluate(*n.a);
      static constexpr std::string_view name = "an inline if without else";
      return n.c == nullptr ? undefined_value(&name) : evaluate(*n.c);
    }
    default:
      break;
  }
  fail("a statement in the place of an expression");
}

value renderer::evaluate_call(const node& n) {
  value callee;
  value self;
  auto code = method_code::none;
  if (n.a->kind == node_kind::attribute) {
    self = evaluate(*n.a->a);
    line_ = n.a->line;
    code = static_cast<method_code>(n.a->code);
    if (!has_method(self, code)) {
      code = method_code::none;
      callee = attribute(self, n.a->text, static_cast<method_code>(n.a->code));
    }
  } else {
    callee = evaluate(*n.a);
  }
  arguments given = evaluate_all(n.items);
  if (n.b != nullptr) {
    const auto more = all_items(evaluate(*n.b));
    std::vector<value> all(given.begin(), given.end());
    all.insert(all.end(), more.begin(), more.end());
    given = pool_.list(all).items();
  }
  std::span<const named_argument> named;
  if (!n.keywords.empty()) {
    auto* made = pool_.allocate_array<named_argument>(n.keywords.size());
    for (std::size_t i = 0; i < n.keywords.size(); ++i) {
      new (made + i) named_argument{n.keywords[i].name, evaluate(*n.keywords[i].expression)};
    }
    named = {made, n.keywords.size()};
  }
  line_ = n.line;
  if (code != method_code::none) return call_method(self, code, given, named);
  switch (callee.kind()) {
    case value_kind::macro:
      return call_macro(*static_cast<const macro_data*>(callee.object()), given, named);
    case value_kind::function:
      return call_function(static_cast<function_code>(callee.tag()), given, named);
    case value_kind::method: {
      const auto& method = *static_cast<const method_data*>(callee.object());
      return call_method(method.self, method.code, given, named);
    }
    case value_kind::undefined:
      fail_undefined(callee);
    default:
      fail(std::string("a value of type ") + type_name(callee) + " cannot be called");
  }
}

value renderer::call_macro(const macro_data& macro, arguments given,
                           std::span<const named_argument> named) {
  check_stack();
  const node& definition = *macro.definition;
  const std::size_t count = definition.items.size();
  const std::string name = "the macro " + std::string(definition.text);
  if (given.size() > count) fail(name + " takes at most " + std::to_string(count) + " arguments");
  activation call{pool_.allocate_array<value>(definition.slots), macro.around};
  // A macro that is defined in this one may be called later, so the slots stay.
  auto* kept = new (pool_.allocate(sizeof(activation), alignof(activation))) activation(call);
  std::uninitialized_fill_n(kept->slots, definition.slots, missing());
  for (std::size_t i = 0; i < given.size(); ++i)
    kept->slots[definition.items[i]->place.slot] = given[i];
  for (const named_argument& argument : named) {
    std::size_t i = given.size();
    while (i < count && definition.items[i]->text != argument.name) ++i;
    if (i == count) fail(name + " takes no keyword argument " + std::string(argument.name));
    kept->slots[definition.items[i]->place.slot] = argument.given;
  }
  const std::uint32_t line = line_;
  activation* before = std::exchange(now_, kept);
  enter(definition.frame);
  const std::size_t first_default = count - definition.others.size();
  for (std::size_t i = first_default; i < count; ++i) {
    value& parameter = kept->slots[definition.items[i]->place.slot];
    if (is_missing(parameter)) parameter = evaluate(*definition.others[i - first_default]);
  }
  const value text = capture(definition.blocks[0]);
  now_ = before;
  line_ = line;
  return text;
}

value renderer::new_space(std::span<const named_argument> named, arguments given) {
  auto* space = new (pool_.allocate(sizeof(space_data), alignof(space_data))) space_data;
  const auto add_one = [&](const value& name, const value& item) {
    if (!name.is_string()) fail("the names of a namespace must be strings");
    if (name.text().substr(0, 1) == "_") fail("attributes of a namespace must not begin with _");
    store(*space, name.text(), item);
  };
  if (given.size() > 1) fail("namespace takes at most 1 positional argument");
  if (given.size() == 1) {
    if (!given[0].is(value_kind::dict)) fail("namespace takes a dict as its positional argument");
    for (const dict_entry& entry : given[0].entries()) add_one(entry.key, entry.item);
  }
  for (const named_argument& argument : named) add_one(value(argument.name), argument.given);
  return value(value_kind::space, space);
}

value renderer::call_function(function_code code, arguments given,
                              std::span<const named_argument> named) {
  switch (code) {
    case function_code::space:
      return new_space(named, given);
    case function_code::dict: {
      std::vector<dict_entry> entries;
      if (given.size() > 1) fail("dict takes at most 1 positional argument");
      if (given.size() == 1) {
        if (!given[0].is(value_kind::dict))
          fail("dict of a value that is not a dict is not supported");
        entries.assign(given[0].entries().begin(), given[0].entries().end());
      }
      for (const named_argument& argument : named)
        entries.push_back({value(argument.name), argument.given});
      return pool_.dict(entries);
    }
    case function_code::raise_exception: {
      value message;
      if (given.size() == 1 && named.empty()) {
        message = given[0];
      } else if (given.empty() && named.size() == 1 && named[0].name == "message") {
        message = named[0].given;
      } else {
        fail("raise_exception takes 1 argument");
      }
      fail("raise_exception: " + std::string(text_of(message)));
    }
    case function_code::strftime_now: {
      value pattern;
      if (given.size() == 1 && named.empty()) {
        pattern = given[0];
      } else if (given.empty() && named.size() == 1 && named[0].name == "format") {
        pattern = named[0].given;
      } else {
        fail("strftime_now takes 1 argument");
      }
      const std::string format_text(string_argument(pattern, "the format of strftime_now"));
      const value* now = variables_.find("date_now");
      if (now == nullptr || !now->is(value_kind::integer)) {
        fail("strftime_now needs the date in the variable date_now, in seconds since 1970");
      }
      const auto seconds = static_cast<std::time_t>(now->integer());
      std::tm parts{};
      if (::gmtime_r(&seconds, &parts) == nullptr) fail("date_now is out of range");
      if (format_text.empty()) return value(std::string_view());
      char text[256];
      const std::size_t size = std::strftime(text, sizeof text, format_text.c_str(), &parts);
      if (size == 0) fail("the format of strftime_now gives no text, or more than 255 bytes");
      return own({text, size});
    }
    case function_code::range: {
      if (!named.empty() || given.empty() || given.size() > 3) fail("range takes 1 to 3 integers");
      std::int64_t bounds[3] = {0, 0, 1};
      if (given.size() == 1) {
        bounds[1] = integer_argument(given[0], "an argument of range");
      } else {
        for (std::size_t i = 0; i < given.size(); ++i) {
          bounds[i] = integer_argument(given[i], "an argument of range");
        }
      }
      const std::int64_t step_size = bounds[2];
      if (step_size == 0) fail("the step of range must not be 0");
      // The distance of two int64 fits a uint64.
      const bool up = step_size > 0;
      const auto distance =
          up ? static_cast<std::uint64_t>(bounds[1]) - static_cast<std::uint64_t>(bounds[0])
             : static_cast<std::uint64_t>(bounds[0]) - static_cast<std::uint64_t>(bounds[1]);
      const auto stride =
          up ? static_cast<std::uint64_t>(step_size) : 0 - static_cast<std::uint64_t>(step_size);
      const bool empty = up ? bounds[0] >= bounds[1] : bounds[0] <= bounds[1];
      const std::uint64_t count = empty ? 0 : (distance - 1) / stride + 1;
      if (count > 100'000) fail("range has more than 100000 items, the limit of Jinja's sandbox");
      auto* items = pool_.allocate_array<value>(count);
      std::int64_t number = bounds[0];
      for (std::size_t i = 0; i < count; ++i) {
        new (items + i) value(number);
        if (i + 1 < count) number += step_size;
      }
      return value(value_kind::range, std::span<const value>(items, count));
    }
  }
  fail("an unknown function");
}

// --- Iteration -------------------------------------------------------------------------------

item_source renderer::iterate(const value& of) {
  item_source source;
  switch (of.kind()) {
    case value_kind::list:
    case value_kind::tuple:
    case value_kind::range:
    case value_kind::view:
      source.items = of.items();
      return source;
    case value_kind::dict:
      source.entries = of.entries();
      return source;
    case value_kind::string:
      source.text = of.text();
      return source;
    case value_kind::generator:
      source.generator =
          const_cast<generator_data*>(static_cast<const generator_data*>(of.object()));
      return source;
    case value_kind::undefined:
      return source;
    case value_kind::loop:
      fail("a loop over loop is not supported");
    default:
      fail(std::string("a value of type ") + type_name(of) + " is not iterable");
  }
}

bool renderer::next(item_source& source, value& item) {
  if (source.generator != nullptr) {
    generator_data& g = *source.generator;
    if (g.filter != nullptr) compute(g);
    if (g.at == g.items.size()) return false;
    item = g.items[g.at++];
    return true;
  }
  if (source.at < source.items.size()) {
    item = source.items[source.at++];
    return true;
  }
  if (source.at < source.entries.size()) {
    item = source.entries[source.at++].key;
    return true;
  }
  if (source.at < source.text.size()) {
    const std::size_t begin = source.at;
    (void)next_code_point(source.text, source.at);
    item = value(source.text.substr(begin, source.at - begin));
    return true;
  }
  return false;
}

std::span<const value> renderer::all_items(const value& of) {
  switch (of.kind()) {
    case value_kind::list:
    case value_kind::tuple:
    case value_kind::range:
    case value_kind::view:
      return of.items();
    default:
      break;
  }
  item_source source = iterate(of);
  std::vector<value> items;
  value item;
  while (next(source, item)) {
    items.push_back(item);
    charge(64);
  }
  return pool_.list(items).items();
}

std::size_t renderer::length(const value& of) {
  switch (of.kind()) {
    case value_kind::list:
    case value_kind::tuple:
    case value_kind::range:
    case value_kind::view:
      return of.items().size();
    case value_kind::dict:
      return of.entries().size();
    case value_kind::string:
      charge(of.text().size());
      return count_code_points(of.text());
    case value_kind::undefined:
      return 0;
    case value_kind::loop: {
      auto& data = *const_cast<loop_data*>(static_cast<const loop_data*>(of.object()));
      static constexpr std::string_view name = "length";
      return static_cast<std::size_t>(loop_attribute(data, name).integer());
    }
    default:
      fail(std::string("a value of type ") + type_name(of) + " has no length");
  }
}

// --- Texts -----------------------------------------------------------------------------------

std::string_view renderer::text_of(const value& of) {
  if (of.is_string()) return of.text();
  std::string text;
  append_text(of, text);
  return own(text).text();
}

value renderer::soft(const value& of) {
  return of.is_string() ? of : value(text_of(of));
}

std::string_view renderer::string_argument(const value& of, const char* what) const {
  if (!of.is_string()) fail(std::string(what) + " must be a string, found " + type_name(of));
  return of.text();
}

std::int64_t renderer::integer_argument(const value& of, const char* what) const {
  if (!of.is(value_kind::integer) && !of.is(value_kind::boolean)) {
    fail(std::string(what) + " must be an integer, found " + type_name(of));
  }
  return of.integer();
}

// ---------------------------------------------------------------------------------------------

rendered chat_template::render(const value& variables, const render_limits& limits) const {
  rendered out;
  render(variables, out, limits);
  return out;
}

void chat_template::render(const value& variables, rendered& out,
                           const render_limits& limits) const {
  renderer(*program_, variables, limits, out).run();
}

value make_variables(const conversation& from, std::span<const dict_entry> more, value_pool& pool) {
  std::vector<dict_entry> entries;
  value messages = from.messages;
  if (messages.is(value_kind::list)) {
    constexpr std::string_view fields[] = {"reasoning_content", "thinking", "reasoning"};
    std::vector<value> changed;
    for (std::size_t i = 0; i < messages.items().size(); ++i) {
      const value& message = messages.items()[i];
      if (!message.is(value_kind::dict)) continue;
      const value* reasoning = nullptr;
      for (const std::string_view field : fields) {
        const value* found = message.find(field);
        if (reasoning == nullptr && found != nullptr && !found->is(value_kind::none))
          reasoning = found;
      }
      if (reasoning == nullptr) continue;
      if (changed.empty()) changed.assign(messages.items().begin(), messages.items().end());
      std::vector<dict_entry> members = {{value("thinking"), *reasoning}};
      members.insert(members.end(), message.entries().begin(), message.entries().end());
      members.push_back({value("reasoning_content"), *reasoning});
      changed[i] = pool.dict(members);
    }
    if (!changed.empty()) messages = pool.list(changed);
  }
  entries.push_back({value("messages"), messages});
  entries.push_back({value("tools"), from.tools});
  entries.push_back({value("documents"), from.documents});
  entries.push_back({value("add_generation_prompt"), value(from.add_generation_prompt)});
  entries.insert(entries.end(), more.begin(), more.end());
  return pool.dict(entries);
}

}  // namespace millrace::chat
