// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/chat/chat_template.hpp>
#include <millrace/chat/value.hpp>
#include <millrace/error.hpp>

// Example:
//
//     const auto llama = millrace::chat::chat_template::parse(source, "llama.jinja");
//     millrace::chat::training_renderer renderer({llama}, {}, {.special_tokens = {"<|eot_id|>"}});
//     millrace::chat::value_pool pool;
//     millrace::chat::training_text out;
//     renderer.render(millrace::chat::parse_json(line, pool), out);

/// Text to train on, made from records of conversations: what a template renders, and which bytes
/// of it a model learns to write.
namespace millrace::chat {

/// A record is not a conversation, or its template cannot say what belongs to which message. The
/// message is one line, which names the message by its number, from 0.
class conversation_error : public error {
 public:
  using error::error;
};

/// Whose turns are trained.
enum class trained_turns : std::uint8_t {
  assistant,  ///< all turns of the assistant
  last,       ///< the last of these
  all,        ///< every byte of the text
};

/// Which ends of turns are trained: the last special token of a turn and what follows it, if that
/// is only white space.
enum class trained_ends : std::uint8_t {
  turn,  ///< those of all trained turns
  last,  ///< that of the last trained turn
  none,
};

/// What becomes of the reasoning of a message: its field `reasoning_content`, `thinking` or
/// `reasoning`.
enum class reasoning_form : std::uint8_t {
  native,   ///< the template gets the message as it is
  strip,    ///< the template does not get it
  inlined,  ///< it becomes `<think>\n...\n</think>\n` before the content
};

struct training_options {
  std::string messages_key = "messages";
  std::string tools_key = "tools";
  /// New names of roles. `human` and `gpt` are `user` and `assistant` in any case.
  std::vector<std::pair<std::string, std::string>> roles = {};
  trained_turns turns = trained_turns::assistant;
  bool reasoning = true;   ///< train the reasoning in trained turns
  bool tool_calls = true;  ///< train the tool calls in trained turns
  trained_ends ends = trained_ends::turn;
  reasoning_form reasoning_as = reasoning_form::native;
  /// As Megatron's SFTTokenizer: a turn of the assistant has a content, and follows a user or a
  /// tool. Trained turns that follow one another stay apart.
  bool strict_turns = false;
  /// The special tokens of the tokenizer, which end turns.
  std::vector<std::string> special_tokens = {};
};

/// The templates of a tokenizer.
struct training_templates {
  chat_template usual;
  /// For records with tools; if empty, `usual` is for these, too.
  std::optional<chat_template> with_tools = std::nullopt;
};

struct training_text {
  std::string text;
  /// Bytes to be predicted; ascending, not empty, and with bytes between them unless there are
  /// strict turns.
  std::vector<byte_span> trained;
};

/// Renders records. Use one per thread; the template may be shared.
///
/// A record is an object with a list of messages under `messages_key`, each with `role` and
/// `content`, or as in ShareGPT with `from` and `value`; with `prompt` and `completion`, which are
/// texts or lists of messages; or as in Alpaca with `instruction`, `output` and maybe `input`.
///
/// If the template has `{% generation %}` blocks, these say what the turns of the assistant are.
/// Otherwise, the turn of message i is what the rendering of the messages 0 to i adds to that of
/// the messages before i. Both must be what the rendering of all messages begins with.
class training_renderer {
 public:
  /// @param variables  special tokens such as bos_token, and other variables of the template. What
  ///                   they view must outlive this object.
  training_renderer(training_templates with, std::vector<dict_entry> variables,
                    training_options options);

  /// Renders a record. Replaces the contents of `out`.
  ///
  /// @param record  a dict
  /// @throws conversation_error  the record is not a conversation, or the template renders a
  /// message
  ///                             in another way if others follow, or not at all
  /// @throws template_error      the template refused the conversation, or failed
  void render(const value& record, training_text& out);

 private:
  std::vector<value> messages_of(const value& record);
  std::vector<value> openai_messages(const value& list, const std::string& key);
  value message_of(const value& from, std::size_t number, const std::string& key);
  value reasoning_applied(const value& message, const std::string& where);
  value parsed_arguments(const value& calls);
  value tools_of(const value& record);
  const chat_template& template_for(const value& tools) const noexcept;
  void run(std::span<const value> messages, const value& tools, rendered& out,
           const render_limits& limits = {});
  void check_turns(std::span<const value> messages) const;
  void find_turns(std::span<const value> messages, const value& tools, training_text& out);
  void leave_out(std::span<const value> messages, const value& tools, std::size_t number,
                 const training_text& all, std::vector<byte_span>& without);
  std::size_t end_mark(std::string_view turn) const;
  std::string line_of(std::span<const value> messages, const value& tools, std::size_t at);

  training_templates templates_;
  std::vector<dict_entry> variables_;
  training_options options_;
  value_pool pool_;
  rendered part_;
};

}  // namespace millrace::chat
