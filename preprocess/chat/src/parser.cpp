// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <millrace/formats/detail/utf8.hpp>

#include "python_text.hpp"
#include "syntax.hpp"

namespace millrace::chat {
namespace {

constexpr int deepest_nesting = 150;  // of brackets and blocks in the source

const std::vector<filter_signature>& filters() {
  using code = filter_code;
  static const std::vector<filter_signature> all = {
      {"abs", code::abs, {}},
      {"capitalize", code::capitalize, {}},
      {"count", code::length, {}},
      {"d", code::default_value, {"default_value", "boolean"}},
      {"default", code::default_value, {"default_value", "boolean"}},
      {"dictsort", code::dictsort, {"case_sensitive", "by", "reverse"}},
      {"first", code::first, {}},
      {"float", code::float_number, {"default"}},
      {"indent", code::indent, {"width", "first", "blank"}},
      {"int", code::int_number, {"default", "base"}},
      {"items", code::items, {}},
      {"join", code::join, {"d", "attribute"}},
      {"last", code::last, {}},
      {"length", code::length, {}},
      {"list", code::list, {}},
      {"lower", code::lower, {}},
      {"map", code::map, {}},
      {"reject", code::reject, {}},
      {"rejectattr", code::rejectattr, {}},
      {"replace", code::replace, {"old", "new", "count"}, 2},
      {"reverse", code::reverse, {}},
      {"safe", code::safe, {}},
      {"select", code::select, {}},
      {"selectattr", code::selectattr, {}},
      {"sort", code::sort, {"reverse", "case_sensitive", "attribute"}},
      {"string", code::string, {}},
      {"title", code::title, {}},
      {"tojson", code::tojson, {"ensure_ascii", "indent", "separators", "sort_keys"}},
      {"trim", code::trim, {"chars"}},
      {"upper", code::upper, {}},
  };
  return all;
}

constexpr test_signature tests[] = {
    {"!=", test_code::ne, 1},
    {"<", test_code::lt, 1},
    {"<=", test_code::le, 1},
    {"==", test_code::eq, 1},
    {">", test_code::gt, 1},
    {">=", test_code::ge, 1},
    {"boolean", test_code::boolean, 0},
    {"defined", test_code::defined, 0},
    {"divisibleby", test_code::divisibleby, 1},
    {"eq", test_code::eq, 1},
    {"equalto", test_code::eq, 1},
    {"even", test_code::even, 0},
    {"false", test_code::false_value, 0},
    {"float", test_code::float_number, 0},
    {"ge", test_code::ge, 1},
    {"greaterthan", test_code::gt, 1},
    {"gt", test_code::gt, 1},
    {"in", test_code::in, 1},
    {"integer", test_code::integer, 0},
    {"iterable", test_code::iterable, 0},
    {"le", test_code::le, 1},
    {"lessthan", test_code::lt, 1},
    {"lower", test_code::lower, 0},
    {"lt", test_code::lt, 1},
    {"mapping", test_code::mapping, 0},
    {"ne", test_code::ne, 1},
    {"none", test_code::none, 0},
    {"number", test_code::number, 0},
    {"odd", test_code::odd, 0},
    {"sequence", test_code::sequence, 0},
    {"string", test_code::string, 0},
    {"true", test_code::true_value, 0},
    {"undefined", test_code::undefined, 0},
    {"upper", test_code::upper, 0},
};

constexpr std::pair<std::string_view, method_code> methods[] = {
    {"capitalize", method_code::capitalize},
    {"changed", method_code::changed},
    {"copy", method_code::copy},
    {"count", method_code::count},
    {"cycle", method_code::cycle},
    {"endswith", method_code::endswith},
    {"find", method_code::find},
    {"get", method_code::get},
    {"index", method_code::index},
    {"items", method_code::items},
    {"join", method_code::join},
    {"keys", method_code::keys},
    {"lower", method_code::lower},
    {"lstrip", method_code::lstrip},
    {"removeprefix", method_code::removeprefix},
    {"removesuffix", method_code::removesuffix},
    {"replace", method_code::replace},
    {"rfind", method_code::rfind},
    {"rsplit", method_code::rsplit},
    {"rstrip", method_code::rstrip},
    {"split", method_code::split},
    {"splitlines", method_code::splitlines},
    {"startswith", method_code::startswith},
    {"strip", method_code::strip},
    {"title", method_code::title},
    {"upper", method_code::upper},
    {"values", method_code::values},
};

constexpr std::string_view unsupported_methods[] = {
    "as_integer_ratio", "bit_count",   "bit_length", "casefold",    "center",
    "conjugate",        "denominator", "encode",     "expandtabs",  "format",
    "format_map",       "fromkeys",    "hex",        "imag",        "isalnum",
    "isalpha",          "isascii",     "isdecimal",  "isdigit",     "isidentifier",
    "is_integer",       "islower",     "isnumeric",  "isprintable", "isspace",
    "istitle",          "isupper",     "ljust",      "maketrans",   "numerator",
    "partition",        "real",        "rindex",     "rjust",       "rpartition",
    "swapcase",         "to_bytes",    "translate",  "zfill",
};

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

class parser {
 public:
  explicit parser(chat_template::program& into) : into_(into), tokens_(tokenize(into)) {}

  void run() {
    into_.body = statements({});
    if (current().kind != token_kind::end) fail("unexpected " + describe(current()));
  }

 private:
  using end_words = std::initializer_list<std::string_view>;

  [[noreturn]] void fail(const std::string& problem) const { fail_at(current().line, problem); }
  [[noreturn]] void fail_at(std::uint32_t line, const std::string& problem) const {
    throw template_error(into_.name, line, problem);
  }
  static std::string describe(const token& t) {
    switch (t.kind) {
      case token_kind::data:
        return "text";
      case token_kind::variable_begin:
        return "{{";
      case token_kind::variable_end:
        return "}}";
      case token_kind::block_begin:
        return "{%";
      case token_kind::block_end:
        return "%}";
      case token_kind::string:
        return "a string";
      case token_kind::number:
        return "a number";
      case token_kind::end:
        return "the end of the template";
      case token_kind::name:
      case token_kind::op:
        break;
    }
    return std::string(t.text);
  }

  const token& current() const { return tokens_[at_]; }
  const token& following() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  token take() {
    const token t = current();
    if (at_ + 1 < tokens_.size()) ++at_;
    return t;
  }
  bool at_op(std::string_view op) const {
    return current().kind == token_kind::op && current().text == op;
  }
  bool at_word(std::string_view word) const {
    return current().kind == token_kind::name && current().text == word;
  }
  bool skip_op(std::string_view op) {
    if (!at_op(op)) return false;
    take();
    return true;
  }
  bool skip_word(std::string_view word) {
    if (!at_word(word)) return false;
    take();
    return true;
  }
  void expect_op(std::string_view op) {
    if (!skip_op(op)) fail("expected " + std::string(op) + ", found " + describe(current()));
  }
  void expect(token_kind kind, const char* what) {
    if (current().kind != kind)
      fail(std::string("expected ") + what + ", found " + describe(current()));
    take();
  }
  token expect_name() {
    if (current().kind != token_kind::name) fail("expected a name, found " + describe(current()));
    return take();
  }

  node* make(node_kind kind, std::uint32_t line, node* a = nullptr, node* b = nullptr,
             node* c = nullptr) {
    into_.nodes.emplace_back();
    node* made = &into_.nodes.back();
    made->kind = kind;
    made->line = line;
    made->a = a;
    made->b = b;
    made->c = c;
    return made;
  }

  /// Counts how deeply the parser calls itself.
  class nesting {
   public:
    explicit nesting(parser& of) : of_(of) {
      if (++of_.depth_ > deepest_nesting)
        of_.fail("blocks or brackets are nested more than 150 levels deep");
    }
    ~nesting() { --of_.depth_; }
    nesting(const nesting&) = delete;
    nesting& operator=(const nesting&) = delete;

   private:
    parser& of_;
  };

  // --- statements ---

  /// Parses up to `{%` and one of the words, which is the current token then.
  std::vector<node*> statements(end_words until) {
    const nesting guard(*this);
    std::vector<node*> body;
    for (;;) {
      const token& t = current();
      if (t.kind == token_kind::end) {
        if (until.size() != 0) {
          fail("the template ends inside a block, expected {% " + std::string(*(until.end() - 1)) +
               " %}");
        }
        return body;
      }
      if (t.kind == token_kind::data) {
        node* made = make(node_kind::text, t.line);
        made->constant = value(t.text);
        body.push_back(made);
        take();
      } else if (t.kind == token_kind::variable_begin) {
        take();
        node* made = make(node_kind::print, t.line);
        made->a = tuple_or_expression(true);
        expect(token_kind::variable_end, "}}");
        body.push_back(made);
      } else {
        take();
        if (current().kind == token_kind::name && one_of(current().text, until)) return body;
        body.push_back(statement());
        expect(token_kind::block_end, "%}");
      }
    }
  }
  /// Parses a body after the head of its block, up to one of the words.
  std::vector<node*> block(end_words until) {
    skip_op(":");
    expect(token_kind::block_end, "%}");
    return statements(until);
  }

  node* statement() {
    if (current().kind != token_kind::name)
      fail("expected the name of a tag, found " + describe(current()));
    const token tag = take();
    if (tag.text == "set") return set(tag.line);
    if (tag.text == "if") return if_statement(tag.line);
    if (tag.text == "for") return for_statement(tag.line);
    if (tag.text == "macro") return macro(tag.line);
    if (tag.text == "generation") return generation(tag.line);
    if (tag.text == "break" || tag.text == "continue") {
      if (loops_ == 0) fail_at(tag.line, std::string(tag.text) + " outside of a loop");
      return make(tag.text == "break" ? node_kind::break_loop : node_kind::continue_loop, tag.line);
    }
    if (one_of(tag.text, {"block", "extends", "print", "include", "from", "import", "with",
                          "autoescape", "call", "filter"})) {
      fail_at(tag.line, "the tag " + std::string(tag.text) + " is not supported");
    }
    fail_at(tag.line, "unknown or misplaced tag " + std::string(tag.text));
  }

  node* set(std::uint32_t line) {
    node* target = assign_target(true, "");
    if (skip_op("=")) {
      node* made = make(node_kind::set, line, target);
      made->b = tuple_or_expression(true);
      return made;
    }
    if (target->kind == node_kind::tuple) {
      fail_at(line, "a block set of several variables is not supported; set one variable");
    }
    node* made = make(node_kind::set_block, line, target);
    made->b = nullptr;
    while (at_op("|")) made->b = filter(made->b);
    made->blocks.push_back(block({"endset"}));
    take();
    return made;
  }

  /// A target of `set`, `for` or a macro's parameter.
  node* assign_target(bool with_space, std::string_view end_word) {
    const std::uint32_t line = current().line;
    const nesting guard(*this);
    std::vector<node*> targets;
    bool is_tuple = false;
    for (;;) {
      if (targets.size() != 0 && is_tuple &&
          (current().kind == token_kind::block_end || at_op(")") ||
           (!end_word.empty() && at_word(end_word)))) {
        break;
      }
      targets.push_back(one_target(with_space));
      if (!skip_op(",")) break;
      is_tuple = true;
    }
    if (!is_tuple) return targets[0];
    node* made = make(node_kind::tuple, line);
    made->items = std::move(targets);
    return made;
  }
  node* one_target(bool with_space) {
    if (skip_op("(")) {
      node* inner = assign_target(with_space, "");
      expect_op(")");
      return inner;
    }
    const token name = current();
    if (name.kind != token_kind::name)
      fail("expected a variable to assign to, found " + describe(name));
    take();
    if (one_of(name.text, {"true", "false", "none", "True", "False", "None"})) {
      fail_at(name.line, "cannot assign to " + std::string(name.text));
    }
    if (name.text == "loop") fail_at(name.line, "assigning to loop is not supported");
    if (with_space && skip_op(".")) {
      node* made = make(node_kind::space_name, name.line, name_node(name));
      made->text = expect_name().text;
      if (made->text.substr(0, 1) == "_") {
        fail_at(name.line, "attributes of a namespace must not begin with _");
      }
      return made;
    }
    return name_node(name);
  }
  node* name_node(const token& name) {
    node* made = make(node_kind::name, name.line);
    made->text = name.text;
    if (name.text == "loop") ++loop_names_;
    return made;
  }

  node* if_statement(std::uint32_t line) {
    node* made = make(node_kind::choice, line);
    for (;;) {
      made->items.push_back(tuple_or_expression(false));
      made->blocks.push_back(block({"elif", "else", "endif"}));
      const token word = take();
      if (word.text == "elif") continue;
      if (word.text == "else") {
        made->items.push_back(nullptr);
        made->blocks.push_back(block({"endif"}));
        take();
      }
      return made;
    }
  }

  node* for_statement(std::uint32_t line) {
    node* made = make(node_kind::for_loop, line);
    made->a = assign_target(false, "in");
    if (!skip_word("in")) fail("expected in, found " + describe(current()));
    made->b = tuple_or_expression(false, "recursive");
    if (skip_word("if")) made->c = expression();
    if (at_word("recursive")) fail("recursive loops are not supported");
    const std::size_t names_before = loop_names_;
    ++loops_;
    made->blocks.push_back(block({"else", "endfor"}));
    --loops_;
    made->uses_loop = loop_names_ != names_before;
    made->blocks.emplace_back();
    if (take().text == "else") {
      made->blocks[1] = block({"endfor"});
      take();
    }
    return made;
  }

  node* macro(std::uint32_t line) {
    node* made = make(node_kind::macro, line);
    made->text = expect_name().text;
    if (one_of(made->text, {"true", "false", "none", "True", "False", "None", "loop"})) {
      fail_at(line, "a macro cannot have the name " + std::string(made->text));
    }
    expect_op("(");
    while (!at_op(")")) {
      if (!made->items.empty()) expect_op(",");
      const token parameter = expect_name();
      if (one_of(parameter.text, {"true", "false", "none", "True", "False", "None", "caller",
                                  "varargs", "kwargs", "loop"})) {
        fail_at(parameter.line,
                "the parameter " + std::string(parameter.text) + " of a macro is not supported");
      }
      for (const node* other : made->items) {
        if (other->text == parameter.text) {
          fail_at(parameter.line, "two parameters have the name " + std::string(parameter.text));
        }
      }
      made->items.push_back(name_node(parameter));
      if (skip_op("=")) {
        made->others.push_back(expression());
      } else if (!made->others.empty()) {
        fail_at(parameter.line, "a parameter without a default follows one that has a default");
      }
    }
    expect_op(")");
    const std::size_t loops = std::exchange(loops_, 0);
    ++macros_;
    made->blocks.push_back(block({"endmacro"}));
    --macros_;
    loops_ = loops;
    take();
    return made;
  }

  node* generation(std::uint32_t line) {
    into_.has_generation = true;
    node* made = make(node_kind::generation, line);
    const std::size_t loops = std::exchange(loops_, 0);
    made->blocks.push_back(block({"endgeneration"}));
    loops_ = loops;
    take();
    return made;
  }

  // --- expressions, from the weakest operator to the strongest ---

  bool at_tuple_end(std::string_view end_word) const {
    return current().kind == token_kind::variable_end || current().kind == token_kind::block_end ||
           at_op(")") || (!end_word.empty() && at_word(end_word));
  }
  node* tuple_or_expression(bool with_condition, std::string_view end_word = "",
                            bool in_brackets = false) {
    const std::uint32_t line = current().line;
    std::vector<node*> items;
    bool is_tuple = false;
    for (;;) {
      if (at_tuple_end(end_word)) break;
      items.push_back(with_condition ? expression() : or_expression());
      if (!skip_op(",")) break;
      is_tuple = true;
    }
    if (!is_tuple) {
      if (!items.empty()) return items[0];
      if (!in_brackets) fail("expected an expression, found " + describe(current()));
    }
    node* made = make(node_kind::tuple, line);
    made->items = std::move(items);
    return made;
  }

  node* expression() {
    const nesting guard(*this);
    node* left = or_expression();
    while (at_word("if")) {
      const std::uint32_t line = take().line;
      node* condition = or_expression();
      node* otherwise = skip_word("else") ? expression() : nullptr;
      left = make(node_kind::conditional, line, left, condition, otherwise);
    }
    return left;
  }
  node* or_expression() {
    node* left = and_expression();
    while (at_word("or")) {
      const std::uint32_t line = take().line;
      node* right = and_expression();
      left = make(node_kind::logical_or, line, left, right);
    }
    return left;
  }
  node* and_expression() {
    node* left = not_expression();
    while (at_word("and")) {
      const std::uint32_t line = take().line;
      node* right = not_expression();
      left = make(node_kind::logical_and, line, left, right);
    }
    return left;
  }
  node* not_expression() {
    if (!at_word("not")) return comparison();
    const nesting guard(*this);
    const std::uint32_t line = take().line;
    return make(node_kind::logical_not, line, not_expression());
  }
  node* comparison() {
    const std::uint32_t line = current().line;
    node* first = sum();
    node* made = nullptr;
    for (;;) {
      compare_code code;
      if (skip_op("==")) {
        code = compare_code::eq;
      } else if (skip_op("!=")) {
        code = compare_code::ne;
      } else if (skip_op("<=")) {
        code = compare_code::le;
      } else if (skip_op("<")) {
        code = compare_code::lt;
      } else if (skip_op(">=")) {
        code = compare_code::ge;
      } else if (skip_op(">")) {
        code = compare_code::gt;
      } else if (skip_word("in")) {
        code = compare_code::in;
      } else if (at_word("not") && following().kind == token_kind::name &&
                 following().text == "in") {
        take();
        take();
        code = compare_code::not_in;
      } else {
        return made == nullptr ? first : made;
      }
      if (made == nullptr) made = make(node_kind::compare, line, first);
      made->codes.push_back(static_cast<std::uint8_t>(code));
      made->items.push_back(sum());
    }
  }
  node* sum() {
    node* left = concatenation();
    while (at_op("+") || at_op("-")) {
      const token op = take();
      node* right = concatenation();
      left = make(op.text == "+" ? node_kind::add : node_kind::subtract, op.line, left, right);
    }
    return left;
  }
  node* concatenation() {
    node* first = product();
    if (!at_op("~")) return first;
    node* made = make(node_kind::concat, current().line);
    made->items.push_back(first);
    while (skip_op("~")) made->items.push_back(product());
    return made;
  }
  node* product() {
    node* left = power();
    for (;;) {
      node_kind kind;
      if (at_op("*")) {
        kind = node_kind::multiply;
      } else if (at_op("/")) {
        kind = node_kind::divide;
      } else if (at_op("//")) {
        kind = node_kind::floor_divide;
      } else if (at_op("%")) {
        kind = node_kind::modulo;
      } else {
        return left;
      }
      const std::uint32_t line = take().line;
      node* right = power();
      left = make(kind, line, left, right);
    }
  }
  node* power() {
    node* left = unary(true);
    while (at_op("**")) {
      const std::uint32_t line = take().line;
      node* right = unary(true);
      left = make(node_kind::power, line, left, right);
    }
    return left;
  }
  node* unary(bool with_filter) {
    const nesting guard(*this);
    node* made = nullptr;
    if (at_op("-") || at_op("+")) {
      const token op = take();
      made =
          make(op.text == "-" ? node_kind::negative : node_kind::positive, op.line, unary(false));
    } else {
      made = primary();
    }
    made = postfix(made);
    if (!with_filter) return made;
    for (;;) {
      if (at_op("|")) {
        made = filter(made);
      } else if (at_word("is")) {
        made = test(made);
      } else if (at_op("(")) {
        made = call(made);
      } else {
        return made;
      }
    }
  }

  node* primary() {
    const token t = current();
    switch (t.kind) {
      case token_kind::name: {
        take();
        node* made = nullptr;
        if (one_of(t.text, {"true", "True", "false", "False"})) {
          made = make(node_kind::constant, t.line);
          made->constant = value(t.text == "true" || t.text == "True");
        } else if (t.text == "none" || t.text == "None") {
          made = make(node_kind::constant, t.line);
        } else {
          if (macros_ != 0 && one_of(t.text, {"caller", "varargs", "kwargs"})) {
            fail_at(t.line, std::string(t.text) + " in a macro is not supported");
          }
          made = name_node(t);
        }
        return made;
      }
      case token_kind::string: {
        take();
        node* made = make(node_kind::constant, t.line);
        made->constant = t.constant;
        if (current().kind == token_kind::string) {
          std::string text(t.constant.text());
          while (current().kind == token_kind::string) text += take().constant.text();
          made->constant = into_.pool.string(text);
        }
        return made;
      }
      case token_kind::number: {
        take();
        node* made = make(node_kind::constant, t.line);
        made->constant = t.constant;
        return made;
      }
      case token_kind::op:
        if (t.text == "(") {
          take();
          node* made = tuple_or_expression(true, "", true);
          expect_op(")");
          return made;
        }
        if (t.text == "[") {
          take();
          node* made = make(node_kind::list, t.line);
          while (!at_op("]")) {
            made->items.push_back(expression());
            if (!at_op("]")) expect_op(",");
          }
          take();
          return made;
        }
        if (t.text == "{") {
          take();
          node* made = make(node_kind::dict, t.line);
          while (!at_op("}")) {
            made->items.push_back(expression());
            expect_op(":");
            made->items.push_back(expression());
            if (!at_op("}")) expect_op(",");
          }
          take();
          return made;
        }
        break;
      default:
        break;
    }
    fail("expected an expression, found " + describe(t));
  }

  node* postfix(node* made) {
    for (;;) {
      if (at_op(".")) {
        made = attribute(made);
      } else if (at_op("[")) {
        made = subscript(made);
      } else if (at_op("(")) {
        made = call(made);
      } else {
        return made;
      }
    }
  }

  node* attribute(node* object) {
    const std::uint32_t line = take().line;
    const token name = take();
    if (name.kind == token_kind::number && name.constant.is(value_kind::integer)) {
      node* index = make(node_kind::constant, name.line);
      index->constant = name.constant;
      return make(node_kind::item, line, object, index);
    }
    if (name.kind != token_kind::name) fail_at(name.line, "expected a name or a number after .");
    if (name.text.substr(0, 2) == "__") {
      fail_at(name.line,
              "attributes that begin with __ are not supported: " + std::string(name.text));
    }
    node* made = make(node_kind::attribute, line, object);
    made->text = name.text;
    made->code = static_cast<std::uint8_t>(find_method(name.text));
    return made;
  }

  node* subscript(node* object) {
    const std::uint32_t line = take().line;
    node* index = nullptr;
    node* slice = nullptr;
    if (!at_op(":")) index = expression();
    if (at_op(":")) {
      slice = make(node_kind::slice, line, object);
      slice->items = {index, nullptr, nullptr};
      take();
      if (!at_op(":") && !at_op("]")) slice->items[1] = expression();
      if (skip_op(":") && !at_op("]")) slice->items[2] = expression();
    }
    if (at_op(",")) fail("an index with a comma is not supported");
    expect_op("]");
    return slice != nullptr ? slice : make(node_kind::item, line, object, index);
  }

  void arguments(node* into) {
    expect_op("(");
    while (!at_op(")")) {
      if (at_op("**") || (at_op("*") && into->kind != node_kind::call)) {
        fail("arguments with " + std::string(current().text) + " are not supported here");
      }
      if (at_op("*")) {
        if (into->b != nullptr) fail("a call has two arguments with *");
        take();
        into->b = expression();
        if (!at_op(")")) expect_op(",");
        continue;
      }
      if (current().kind == token_kind::name && following().kind == token_kind::op &&
          following().text == "=") {
        const token name = take();
        take();
        for (const keyword& other : into->keywords) {
          if (other.name == name.text)
            fail_at(name.line, "two arguments have the name " + std::string(name.text));
        }
        into->keywords.push_back({name.text, expression()});
      } else {
        if (!into->keywords.empty() || (into->kind == node_kind::call && into->b != nullptr)) {
          fail("a positional argument follows one with a name or with *");
        }
        into->items.push_back(expression());
      }
      if (!at_op(")")) expect_op(",");
    }
    take();
  }

  node* call(node* callee) {
    node* made = make(node_kind::call, current().line, callee);
    arguments(made);
    if (callee->kind == node_kind::attribute && is_unsupported_method(callee->text)) {
      fail_at(made->line, "the method " + std::string(callee->text) + " is not supported");
    }
    return made;
  }

  node* filter(node* input) {
    take();
    const token name = expect_name();
    const filter_signature* signature = find_filter(name.text);
    if (at_op("."))
      fail("names of filters with a dot are not supported: " + std::string(name.text) + ".");
    if (signature == nullptr)
      fail_at(name.line, "the filter " + std::string(name.text) + " is not supported");
    node* made = make(node_kind::filter, name.line, input);
    made->code = static_cast<std::uint8_t>(signature->code);
    made->text = signature->name;
    if (at_op("(")) arguments(made);
    bind_filter(made, *signature);
    return made;
  }

  /// Turns the arguments of a filter into one per parameter, null where it is absent.
  void bind_filter(node* made, const filter_signature& signature) {
    switch (signature.code) {
      case filter_code::map:
        bind_map(made);
        return;
      case filter_code::select:
      case filter_code::reject:
        bind_test(made, 0);
        return;
      case filter_code::selectattr:
      case filter_code::rejectattr:
        if (made->items.empty())
          fail_at(made->line, std::string(signature.name) + " needs the name of an attribute");
        bind_test(made, 1);
        return;
      default:
        break;
    }
    const std::string name = "the filter " + std::string(signature.name);
    if (made->items.size() > signature.parameters.size()) {
      fail_at(made->line, name + " takes at most " + std::to_string(signature.parameters.size()) +
                              " arguments");
    }
    std::vector<node*> bound = made->items;
    bound.resize(signature.parameters.size());
    for (const keyword& k : made->keywords) {
      const auto found =
          std::find(signature.parameters.begin(), signature.parameters.end(), k.name);
      if (found == signature.parameters.end()) {
        fail_at(made->line, name + " has no argument " + std::string(k.name));
      }
      node*& place = bound[static_cast<std::size_t>(found - signature.parameters.begin())];
      if (place != nullptr)
        fail_at(made->line, name + " got the argument " + std::string(k.name) + " twice");
      place = k.expression;
    }
    for (std::size_t i = 0; i < signature.required; ++i) {
      if (bound[i] == nullptr) {
        fail_at(made->line, name + " needs the argument " + std::string(signature.parameters[i]));
      }
    }
    made->items = std::move(bound);
    made->keywords.clear();
  }

  std::string_view constant_name(const node* from, const char* what) {
    if (from->kind != node_kind::constant || !from->constant.is_string()) {
      fail_at(from->line, std::string("the ") + what + " must be a string literal here");
    }
    return from->constant.text();
  }

  /// map(attribute=..., default=...) or map('filter', ...): the filter becomes `b`, on no input.
  void bind_map(node* made) {
    if (made->items.empty()) {
      std::vector<node*> bound(2);
      for (const keyword& k : made->keywords) {
        if (k.name != "attribute" && k.name != "default") {
          fail_at(made->line, "the filter map has no argument " + std::string(k.name));
        }
        bound[k.name == "default" ? 1 : 0] = k.expression;
      }
      if (bound[0] == nullptr)
        fail_at(made->line, "the filter map needs attribute= or the name of a filter");
      made->items = std::move(bound);
      made->keywords.clear();
      return;
    }
    const std::string_view name = constant_name(made->items[0], "filter of map");
    const filter_signature* signature = find_filter(name);
    if (signature == nullptr)
      fail_at(made->line, "the filter " + std::string(name) + " is not supported");
    if (one_of(name, {"map", "select", "reject", "selectattr", "rejectattr"})) {
      fail_at(made->line, "the filter " + std::string(name) + " in map is not supported");
    }
    node* inner = make(node_kind::filter, made->line);
    inner->code = static_cast<std::uint8_t>(signature->code);
    inner->text = signature->name;
    inner->items.assign(made->items.begin() + 1, made->items.end());
    inner->keywords = std::move(made->keywords);
    bind_filter(inner, *signature);
    made->keywords.clear();
    made->items.clear();
    made->b = inner;
  }

  /// select('test', ...) and its relatives: the test becomes `b`, on no input.
  void bind_test(node* made, std::size_t offset) {
    if (!made->keywords.empty()) {
      fail_at(made->line, "the filter " + std::string(made->text) + " has no argument " +
                              std::string(made->keywords[0].name));
    }
    if (made->items.size() == offset) return;
    const std::string_view name = constant_name(made->items[offset], "test");
    node* inner = make(node_kind::test, made->line);
    inner->text = name;
    inner->items.assign(made->items.begin() + static_cast<std::ptrdiff_t>(offset) + 1,
                        made->items.end());
    bind_named_test(inner);
    made->items.resize(offset);
    made->b = inner;
  }
  void bind_named_test(node* made) {
    const test_signature* signature = find_test(made->text);
    if (signature == nullptr)
      fail_at(made->line, "the test " + std::string(made->text) + " is not supported");
    if (!made->keywords.empty() || made->items.size() != signature->arguments) {
      fail_at(made->line, "the test " + std::string(made->text) + " takes " +
                              std::to_string(signature->arguments) + " arguments");
    }
    made->code = static_cast<std::uint8_t>(signature->code);
  }

  node* test(node* input) {
    const std::uint32_t line = take().line;
    const bool negated = skip_word("not");
    node* made = make(node_kind::test, line, input);
    made->text = expect_name().text;
    if (at_op("."))
      fail("names of tests with a dot are not supported: " + std::string(made->text) + ".");
    const token& t = current();
    if (at_op("(")) {
      arguments(made);
    } else if ((t.kind == token_kind::name && !one_of(t.text, {"else", "or", "and"})) ||
               t.kind == token_kind::string || t.kind == token_kind::number || at_op("[") ||
               at_op("{")) {
      if (at_word("is")) fail("tests cannot be chained with is");
      made->items.push_back(postfix(primary()));
    }
    bind_named_test(made);
    return negated ? make(node_kind::logical_not, line, made) : made;
  }

  chat_template::program& into_;
  std::vector<token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::size_t loop_names_ = 0;  // how often `loop` was read so far
  std::size_t loops_ = 0;       // around the current statement, in the same function
  std::size_t macros_ = 0;      // around the current statement
};

/// The source as Jinja reads it: line ends are \n, and one at the end is dropped.
std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') continue;
      text += '\n';
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

const filter_signature* find_filter(std::string_view name) {
  for (const filter_signature& f : filters()) {
    if (f.name == name) return &f;
  }
  return nullptr;
}
const test_signature* find_test(std::string_view name) {
  for (const test_signature& t : tests) {
    if (t.name == name) return &t;
  }
  return nullptr;
}
method_code find_method(std::string_view name) {
  for (const auto& [known, code] : methods) {
    if (known == name) return code;
  }
  return method_code::none;
}
bool is_unsupported_method(std::string_view name) {
  return std::find(std::begin(unsupported_methods), std::end(unsupported_methods), name) !=
         std::end(unsupported_methods);
}

chat_template chat_template::parse(std::string_view source, std::string name) {
  auto parsed = std::make_shared<program>();
  parsed->name = std::move(name);
  parsed->source = normalized(source);
  const std::string_view text = parsed->source;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = formats::utf8_sequence_bytes(text.substr(at));
    if (size == 0) {
      const auto line = static_cast<std::uint32_t>(
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1);
      throw template_error(parsed->name, line, "the template is not UTF-8");
    }
    at += size;
  }
  parser(*parsed).run();
  resolve_scopes(*parsed);
  return chat_template(std::move(parsed));
}

bool chat_template::has_generation_blocks() const noexcept {
  return program_->has_generation;
}

}  // namespace millrace::chat
