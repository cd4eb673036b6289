// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/chat/value.hpp>
#include <millrace/error.hpp>

namespace millrace::chat {

/// A template cannot be parsed, uses what this interpreter does not support, or failed while it was
/// rendered. The message names the template, the line and the construct.
class template_error : public error {
 public:
  template_error(const std::string& name, std::uint32_t line, const std::string& problem)
      : error(name + ", line " + std::to_string(line) + ": " + problem), line_(line) {}

  /// Line of the template, from 1.
  std::uint32_t line() const noexcept { return line_; }

 private:
  std::uint32_t line_;
};

/// Bounds the work of one call of render(), so that no template runs forever.
struct render_limits {
  std::uint64_t steps = 100'000'000;  ///< evaluated nodes, or 64 bytes searched or copied
  std::size_t output_bytes = std::size_t{256} << 20;  ///< size of the rendered text
  std::size_t memory_bytes = std::size_t{1} << 30;    ///< all values that the template makes
};

/// Bytes from `begin` to before `end` of a rendered text.
struct byte_span {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const byte_span&, const byte_span&) = default;
};

struct rendered {
  std::string text;
  /// What each executed `{% generation %}` block rendered, in the order in which the blocks ended.
  /// Inside a macro or a block set, transformers counts from the end of the text that precedes the
  /// whole statement, and so does this.
  std::vector<byte_span> generation;
};

/// A chat template in the subset of Jinja that Hugging Face templates use, with the settings and
/// functions of transformers (trim_blocks, lstrip_blocks, generation, loopcontrols, tojson,
/// raise_exception, strftime_now).
///
/// A template is immutable, so any number of threads may render it at the same time.
class chat_template {
 public:
  /// Parses `source`, which need not outlive the call. `name` appears in error messages.
  ///
  /// @throws template_error  a syntax error, or a construct outside of the subset
  static chat_template parse(std::string_view source, std::string name);

  /// Renders the template with the members of `variables`, a dict, as its variables. `strftime_now`
  /// formats the date in the variable `date_now`, seconds since 1970 in local time.
  ///
  /// @throws template_error  raise_exception was called, an operation failed, or a limit was
  /// exceeded
  rendered render(const value& variables, const render_limits& limits = {}) const;
  /// Like the other function, but reuses the memory of `out`, whose content is replaced. If an
  /// exception is thrown, the content of `out` is unspecified.
  void render(const value& variables, rendered& out, const render_limits& limits = {}) const;

  /// Whether the template has a `{% generation %}` block anywhere.
  bool has_generation_blocks() const noexcept;

  struct program;  // private: a parsed template

 private:
  explicit chat_template(std::shared_ptr<const program> parsed) : program_(std::move(parsed)) {}

  std::shared_ptr<const program> program_;
};

/// What transformers passes to a template beside the special tokens.
struct conversation {
  value messages;        ///< list of dicts
  value tools = {};      ///< list of dicts, or none
  value documents = {};  ///< list of dicts, or none
  bool add_generation_prompt = false;
};

/// The variables of a template as apply_chat_template() of transformers sets them. `more` holds
/// special tokens such as bos_token and any other variables. It precedes nothing: a later entry
/// with the name of an earlier one replaces it. The reasoning of a message is copied to the fields
/// `reasoning_content` and `thinking`, as transformers does. The result lives in `pool`, and views
/// what the arguments view.
value make_variables(const conversation& from, std::span<const dict_entry> more, value_pool& pool);

}  // namespace millrace::chat
