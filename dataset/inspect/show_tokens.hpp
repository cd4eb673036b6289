// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include <millrace/command/terminal.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "command_line.hpp"

/// What `show` prints of a document, a sequence or a row of a batch: which tokens, in which form.
namespace millrace::inspect {

extern const char* const show_help;

/// The value of `--as`.
enum class show_form : std::uint8_t { ids_and_text, ids, text, aligned };

/// Tokens [first, last) are shown. With `--context`, the user asked for [asked_first, asked_last),
/// and the others are their context.
struct token_window {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t asked_first = 0;
  std::int64_t asked_last = 0;

  std::int64_t size() const noexcept { return last - first; }
  bool has_context() const noexcept { return first != asked_first || last != asked_last; }
};

/// The flags that select and format tokens.
class show_options {
 public:
  /// @throws usage_error  the flags contradict each other, or a value is out of range
  explicit show_options(const command_line& line);

  static void add_flags(boost::program_options::options_description& own);

  /// The tokens to show of `total` tokens.
  /// @param whose  the name for messages, e.g. "document 3"
  /// @throws config_error  `--from` is after the last token
  token_window window_of(std::int64_t total, const std::string& whose) const;

  /// True if the tokens are limited only by default or by their number, so that `--all` would show
  /// the rest.
  bool is_start() const noexcept { return !from_; }
  show_form form() const noexcept { return form_; }
  bool has_ids() const noexcept { return form_ != show_form::text; }
  bool has_text() const noexcept { return form_ != show_form::ids; }
  bool is_aligned() const noexcept { return form_ == show_form::aligned; }

 private:
  std::optional<std::int64_t> from_;
  std::optional<std::int64_t> context_;
  std::int64_t count_ = 0;
  show_form form_ = show_form::ids_and_text;
};

/// "tokens 100 to 119 of 3,000" if some tokens before or after are not shown; otherwise empty.
std::string window_text(const token_window& window, std::int64_t total);

/// "3, 7 to 9" for {3, 7, 8, 9}.
std::string ranges_text(std::span<const std::int64_t> ascending);

/// The decoded text of ids, made safe if stdout is a terminal.
std::string shown_text(const tokenizer::tokenizer& with, std::span<const std::int64_t> ids);

/// The text of each of the ids [first, last), with regard to the ids around them: the characters of
/// several ids are whole.
std::vector<std::string> texts_of(const tokenizer::tokenizer& with,
                                  std::span<const std::int64_t> ids, std::int64_t first,
                                  std::int64_t last);

/// The fields that a loader makes of a token.
struct token_fields {
  std::int64_t label = 0;
  bool has_loss = true;
  std::int64_t position = 0;
};

/// A table with one line per token, and border lines between documents.
class token_table {
 public:
  /// @param window  see `token_window`; marks the tokens that the user asked for
  explicit token_table(const token_window& window) : window_(window) {}

  /// Adds a line before the next token.
  void border(std::string text) { lines_.push_back({.border = std::move(text)}); }

  /// Adds a token.
  /// @param text    text of the token; nullopt if the tokenizer is unknown
  /// @param remark      printed after the text, e.g. "(eod)"
  /// @param is_trained  from the mask of the dataset; nullopt if it has none
  void token(std::int64_t at, std::string id, const std::optional<std::string>& text,
             const std::optional<token_fields>& fields = std::nullopt,
             const std::string& remark = {}, const std::optional<bool>& is_trained = std::nullopt);

  /// The table; each line ends with a line end.
  std::string text(bool colors) const;

 private:
  struct line {
    std::string border;
    std::vector<std::string> cells = {};  // aligned right; empty for a border
    std::string text = {};                // the last cell
    command::ink color = command::ink::plain;
    bool asked = false;
  };

  token_window window_;
  std::vector<line> lines_;
  bool has_fields_ = false;
  bool has_marks_ = false;
  bool has_text_ = false;
};

/// Prints samples as the loader serves them: `show` with `--step`, `--iteration` or `--sample`.
/// @return an exit code
int show_batches(const command_line& line);

void add_batch_flags(boost::program_options::options_description& own);

}  // namespace millrace::inspect
