// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/chat/chat_template.hpp>
#include <millrace/chat/value.hpp>

/// The tree of a parsed template.
namespace millrace::chat {

enum class node_kind : std::uint8_t {
  // expressions
  constant,
  name,
  list,
  tuple,
  dict,       // items: key, item, key, item, ...
  attribute,  // a.text
  item,       // a[b]
  slice,      // a[items[0]:items[1]:items[2]], each may be null
  call,       // a(items, *b, keywords)
  filter,     // a | code(items)
  test,       // a is code(items)
  logical_not,
  negative,
  positive,
  logical_and,
  logical_or,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  concat,       // items
  compare,      // a, then items; operators in `codes`
  conditional,  // a if b else c (may be null)
  // statements
  text,        // constant
  print,       // a
  set,         // target a, value b
  set_block,   // target a, body, filters in b or null; frame
  space_name,  // target: name.text
  choice,      // branches: tests in items (null for else) and bodies in blocks
  for_loop,    // target a, iterable b, test c or null; blocks: body, else
  macro,       // text; parameters in items (names), defaults in others
  generation,
  break_loop,
  continue_loop,
};

enum class filter_code : std::uint8_t {
  abs,
  capitalize,
  default_value,
  dictsort,
  first,
  float_number,
  indent,
  int_number,
  items,
  join,
  last,
  length,
  list,
  lower,
  map,
  reject,
  rejectattr,
  replace,
  reverse,
  safe,
  select,
  selectattr,
  sort,
  string,
  title,
  tojson,
  trim,
  upper,
};
enum class test_code : std::uint8_t {
  boolean,
  defined,
  divisibleby,
  eq,
  even,
  false_value,
  float_number,
  ge,
  gt,
  in,
  integer,
  iterable,
  le,
  lower,
  lt,
  mapping,
  ne,
  none,
  number,
  odd,
  sequence,
  string,
  true_value,
  undefined,
  upper,
};
enum class method_code : std::uint8_t {
  none,
  // of str
  capitalize,
  count,
  endswith,
  find,
  join,
  lower,
  lstrip,
  removeprefix,
  removesuffix,
  replace,
  rfind,
  rsplit,
  rstrip,
  split,
  splitlines,
  startswith,
  strip,
  title,
  upper,
  // of dict
  copy,
  get,
  items,
  keys,
  values,
  // of list and tuple, which share count and copy
  index,
  // of loop
  cycle,
  changed,
};
enum class function_code : std::uint8_t { range, space, dict, raise_exception, strftime_now };
enum class compare_code : std::uint8_t { eq, ne, lt, le, gt, ge, in, not_in };

/// A variable: a slot of the function that is `hops` functions outside of the current one.
struct variable {
  std::uint32_t hops = 0;
  std::uint32_t slot = 0;
};

/// How a slot is set when a frame (Jinja's unit of scope) is entered.
struct frame_load {
  enum class way : std::uint8_t { missing, alias, resolve };
  way from;
  std::uint32_t slot = 0;
  variable outer;         ///< for alias
  std::string_view name;  ///< for resolve: an input, or a function of Jinja
};
struct frame_info {
  std::vector<frame_load> loads;
};

struct node;
struct keyword {
  std::string_view name;
  node* expression;
};

struct node {
  node_kind kind;
  std::uint32_t line = 0;
  std::uint8_t code = 0;   // filter_code, test_code or method_code
  bool uses_loop = false;  // of for_loop
  bool attribute_of_loop = false;
  variable place;  // of a name, a macro's name, a set target
  variable loop;   // of for_loop: the slot of `loop`
  node* a = nullptr;
  node* b = nullptr;
  node* c = nullptr;
  std::string_view text;
  value constant;
  std::vector<node*> items;
  std::vector<node*> others;
  std::vector<keyword> keywords;
  std::vector<std::uint8_t> codes;
  std::vector<std::vector<node*>> blocks;
  frame_info frame;       // of the body
  frame_info test_frame;  // of the test of for_loop
  frame_info else_frame;
  std::uint32_t slots = 0;  // of macro
};

struct chat_template::program {
  std::string name;
  std::string source;  // with its line ends normalized; texts of nodes view it or `pool`
  value_pool pool;
  std::deque<node> nodes;
  std::vector<node*> body;
  frame_info frame;
  std::uint32_t slots = 0;
  bool has_generation = false;
};

enum class token_kind : std::uint8_t {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  number,
  op,
  end,
};
struct token {
  token_kind kind;
  std::uint32_t line = 0;
  std::string_view text = {};  // of a name, an operator or data
  value constant = {};         // of a string or a number
};

/// Splits program.source into tokens, with Jinja's rules for white space around tags.
std::vector<token> tokenize(chat_template::program& into);
/// Finds the slots of all variables. `into.body` is complete.
void resolve_scopes(chat_template::program& into);

/// The filter of this name, or null.
struct filter_signature {
  std::string_view name;
  filter_code code;
  std::vector<std::string_view> parameters;
  std::size_t required = 0;
};
const filter_signature* find_filter(std::string_view name);
struct test_signature {
  std::string_view name;
  test_code code;
  std::size_t arguments = 0;
};
const test_signature* find_test(std::string_view name);
method_code find_method(std::string_view name);
/// Whether Python's str, dict, list or numbers have a method that is not supported here.
bool is_unsupported_method(std::string_view name);

}  // namespace millrace::chat
