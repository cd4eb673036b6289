// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/token_texts.hpp>
#include <millrace/tokenizer/detail/id_buffer.hpp>

/// Converts text to ids and back. Each tokenizer type implements the interfaces `tokenizer` and
/// `encoder`.
///
///     const auto tokenizer = millrace::tokenizer::make_tokenizer({});  // ByteLevelTokenizer
///     const auto encoder = tokenizer->make_encoder();
///     millrace::tokenizer::id_buffer ids;
///     if (const auto fault = encoder->encode("some text", ids)) std::cerr << fault->what << '\n';

// Example:
//
//     millrace::tokenizer::tokenizer_options options;
//     options.type = "GPT2BPETokenizer";
//     options.vocab_file = "vocab.json";
//     options.merge_file = "merges.txt";
//     const auto tokenizer = millrace::tokenizer::make_tokenizer(options);
//     const auto encoder = tokenizer->make_encoder();  // one for each thread
//     millrace::tokenizer::id_buffer ids;
//     const auto fault = encoder->encode("Hello world", ids);  // nothing, or why there are no ids

namespace millrace::tokenizer {

/// The reason why a text cannot be encoded, and the byte offset in the text where the problem is.
struct encode_fault {
  std::size_t offset_bytes = 0;
  std::string what;
};

/// One part of a text that is encoded in several calls. The cuts between parts come from
/// tokenizer::last_cut. The default flags mark the part as a whole text.
struct text_part {
  std::string_view text;
  bool is_first = true;  ///< the text begins with this part
  bool is_last = true;   ///< the text ends with this part
  /// Add the ids that a template puts before and after a text, e.g. a beginning-of-sequence id.
  bool with_template = true;
};

/// Bytes of a text: those from `begin` up to, but not including, `end`.
struct byte_span {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const byte_span&, const byte_span&) = default;
};

/// Encodes texts on one thread. Owns scratch memory and caches.
///
/// The tokenizer must outlive its encoders. Equal texts give equal ids, regardless of the texts
/// encoded before.
class encoder {
 public:
  virtual ~encoder() = default;

  /// Appends the ids of `text` to `ids`.
  ///
  /// @param text  valid UTF-8
  /// @return std::nullopt on success. Otherwise the reason why this text cannot be encoded; then
  ///         `ids` may contain the ids of a part of the text.
  virtual std::optional<encode_fault> encode(std::string_view text, id_buffer& ids) = 0;

  /// Appends the ids of one part of a text. Encoding all parts in order gives the same ids as
  /// encoding the whole text.
  ///
  /// @return as encode(); the offset is relative to the part.
  virtual std::optional<encode_fault> encode_part(const text_part& part, id_buffer& ids) {
    return encode(part.text, ids);
  }

  /// Appends the ids of `text` like encode(), and for each id its span: the bytes of `text` that it
  /// was made from. For masks: a token belongs to a stretch of text if their bytes overlap.
  ///
  ///     std::vector<millrace::tokenizer::byte_span> spans;
  ///     const auto fault = encoder->encode_with_offsets("Hello world", ids, spans);
  ///     // GPT-2: ids 15496 and 995, spans [0, 5) and [5, 11)
  ///
  /// Spans consist of whole characters. If several tokens share a character, each has all of it.
  /// The exact rules are those of the reference program:
  ///
  ///   HuggingFaceTokenizer, Bert*, GPT2BPETokenizer
  ///       the offsets of `tokenizers`, in bytes. Tokens that a template adds have the span [0, 0).
  ///       With `trim_offsets`, spans omit the spaces at both ends of a token. A token that
  ///       normalization made from several characters may have only the first of them, and a prefix
  ///       that it added counts as the first character.
  ///   SentencePieceTokenizer, GPTSentencePieceTokenizer, Llama2Tokenizer
  ///       those of SentencePiece's `return_type='proto'`, except that each byte token has its
  ///       whole character. If one character became several pieces, the last of them has its bytes,
  ///       and the others are empty. So is a dummy space that is a token of its own.
  ///   TikTokenizer, ByteLevelTokenizer
  ///       the token's own bytes, widened to whole characters
  ///   NullTokenizer
  ///       the number, without the spaces next to it
  ///
  /// Takes 1.4 to 2.3 times as long as encode() for byte-level BPE if no normalizer changes the
  /// text, and 10 to 45 times for SentencePiece and BERT, whose caches it does not use.
  ///
  /// @param spans  is appended to; spans.size() need not be ids.size()
  /// @return as encode(). Also a fault if the spans cannot be known exactly, with the reason. After
  ///         a fault, `ids` and `spans` are as before.
  std::optional<encode_fault> encode_with_offsets(std::string_view text, id_buffer& ids,
                                                  std::vector<byte_span>& spans) {
    return encode_part_with_offsets({text}, ids, spans);
  }

  /// As encode_with_offsets() for one part of a text, like encode_part(). Spans count from the
  /// start of the part.
  virtual std::optional<encode_fault> encode_part_with_offsets(const text_part& part,
                                                               id_buffer& ids,
                                                               std::vector<byte_span>& spans);

  /// Sets a function that encode() and encode_part() call regularly, so that it can interrupt them.
  /// They call `check` each time a normalizer begins a step over a text, and again for each MiB
  /// that the step writes. `check` interrupts the call by throwing: the exception propagates to the
  /// caller, and the encoder can be used again. An empty function disables the check. Encoders that
  /// do not normalize never call it.
  virtual void set_interrupt_check(std::function<void()> /*check*/) {}  // NOLINT: others keep it

  /// Number of special tokens that this encoder has found in texts so far. Special tokens that a
  /// template adds do not count.
  virtual std::int64_t special_tokens_found() const noexcept { return 0; }
};

/// An immutable vocabulary with its rules. Any number of threads may share it.
class tokenizer {
 public:
  virtual ~tokenizer() = default;

  /// Default size in bytes of an encoder's pretoken cache, which holds the ids of words seen
  /// before.
  static constexpr std::size_t default_encoder_bytes = std::size_t{48} << 20;

  std::unique_ptr<encoder> make_encoder() const { return make_encoder(default_encoder_bytes); }
  /// @param cache_bytes  size of the encoder's pretoken cache, to within a few KiB. It affects only
  ///                     speed. The memory for encoding a text is extra, and so is the cache that
  ///                     all encoders share: as large as that of the first encoder, but from 12
  ///                     to 48 MiB.
  virtual std::unique_ptr<encoder> make_encoder(std::size_t cache_bytes) const = 0;

  /// Number of ids, including added tokens. Ids range from 0 to vocab_size() - 1. This number
  /// determines the dtype of a dataset.
  virtual std::int64_t vocab_size() const noexcept = 0;

  /// The end-of-document id, or std::nullopt if the vocabulary does not define one.
  virtual std::optional<std::int32_t> eod() const noexcept = 0;

  /// Decodes `ids`. The result may contain invalid UTF-8 if the ids cut a character in half. An id
  /// outside the vocabulary becomes U+FFFD.
  virtual std::string decode(std::span<const std::int64_t> ids) const = 0;

  /// The texts of all tokens, from which a search makes the same text as decode(). std::nullopt if
  /// a token's text depends on more than formats::token_texts describes, or if there are more than
  /// 2^22 ids.
  virtual std::optional<formats::token_texts> token_texts() const { return std::nullopt; }

  /// Finds the last place where `text` can be cut in two without changing its ids. Encoding the two
  /// parts with encoder::encode_part then gives the ids of the uncut text, whatever follows `text`.
  ///
  /// @param text  valid UTF-8 that begins at the start of a text or at an earlier cut
  /// @return byte offset from 1 to text.size() - 1, or 0 if no such place is known
  virtual std::size_t last_cut(std::string_view text) const {
    static_cast<void>(text);
    return 0;
  }
  /// If true, one encoder must encode the parts of a text in order, and must not encode another
  /// text in between. If false, different encoders may encode the parts, in any order.
  virtual bool parts_in_order() const noexcept { return false; }

  /// Hexadecimal SHA-256 of the type, its options, its files and the version of its tables. Two
  /// tokenizers with equal fingerprints give equal ids.
  virtual std::string fingerprint() const = 0;

  /// Notes to show the user before a long run, one line each. Usually empty. The wording may
  /// change.
  virtual std::vector<std::string> notes() const { return {}; }
};

/// Returns the part of `with.decode(ids)` that comes from each id: one text per id, which together
/// are the whole text. Decoders can change earlier text when an id follows, e.g. remove a space, or
/// join bytes to a character. What several ids make together belongs to the last of them. But if
/// each of them is one byte of a character, each gets its byte, so a text may be invalid UTF-8.
///
///     const std::vector<std::int64_t> ids = {72, 105};
///     const auto texts = millrace::tokenizer::decode_each(*tokenizer, ids);  // "H", "i" for bytes
///
/// Takes about 100 times as long as `decode`.
std::vector<std::string> decode_each(const tokenizer& with, std::span<const std::int64_t> ids);

/// How to treat special tokens that a text spells out, e.g. `</s>`.
enum class special_tokens_in_text : std::uint8_t {
  as_reference,    ///< treat them as the type's reference program does
  allow,           ///< encode them as their ids
  encode_as_text,  ///< encode them like any other text
  error,           ///< refuse the text
};

/// The values that the user gave for Megatron's tokenizer flags and for millrace's own tokenizer
/// flags.
struct tokenizer_options {
  std::string type = "ByteLevelTokenizer";      ///< `--tokenizer-type`
  std::filesystem::path model;                  ///< `--tokenizer-model`: a file or a folder
  std::filesystem::path vocab_file;             ///< `--vocab-file`
  std::filesystem::path merge_file;             ///< `--merge-file`
  std::optional<std::int64_t> vocab_size;       ///< `--vocab-size`
  std::optional<std::int64_t> vocab_extra_ids;  ///< `--vocab-extra-ids`

  std::vector<std::string> special_tokens;  ///< `--tokenizer-special-tokens`
  special_tokens_in_text in_text =
      special_tokens_in_text::as_reference;  ///< `--special-tokens-in-text`
  std::string eod_token;                     ///< `--eod-token`: end-of-document token

  std::string tiktoken_pattern;                             ///< `--tiktoken-pattern`
  std::optional<std::int64_t> tiktoken_num_special_tokens;  ///< `--tiktoken-num-special-tokens`
  bool sentencepiece_legacy = false;                        ///< `--tokenizer-sentencepiece-legacy`
  /// False for `--no-tokenizer-sentencepiece-ignore-extra-whitespaces`.
  bool sentencepiece_ignore_extra_whitespaces = true;
  /// False for `--tokenizer-hf-no-include-special-tokens`.
  bool hf_include_special_tokens = true;
  std::optional<std::int64_t> null_eod_id;  ///< `--null-tokenizer-eod-id`
  std::optional<std::int64_t> null_pad_id;  ///< `--null-tokenizer-pad-id`; unused

  /// `--tokenizer-cache`: a folder for files that make later loads fast; empty for none. Created if
  /// only its last part is missing. Neither ids nor the fingerprint depend on it. If it cannot be
  /// used, tokenizer::notes() says why.
  std::filesystem::path cache;
};

/// Takes the options out that Megatron accepts for this type without using them, such as a
/// vocabulary size for a tokenizer whose files define it. make_tokenizer() refuses them, since what
/// the caller asked for would not happen; a program for Megatron's command lines calls this first.
///
/// @return the flags of the options that were taken out, e.g. `--vocab-size`
/// @throws config_error  the type is unknown.
std::vector<std::string> drop_unused_flags(tokenizer_options& options);

/// Creates a tokenizer.
///
///     millrace::tokenizer::tokenizer_options options;
///     options.type = "HuggingFaceTokenizer";
///     options.model = "llama/";
///     const auto tokenizer = millrace::tokenizer::make_tokenizer(options);
///
///   ByteLevelTokenizer   no options; ids are the UTF-8 bytes, vocabulary 512, eod 0
///   NullTokenizer        vocab_size; text is ids separated by single spaces; eod vocab_size - 1
///                        or null_eod_id
///   GPT2BPETokenizer     vocab_file, merge_file; eod `<|endoftext|>`
///   SentencePieceTokenizer, GPTSentencePieceTokenizer, Llama2Tokenizer
///                        model: a SentencePiece file; eod the file's end-of-sentence piece
///   HuggingFaceTokenizer model: a tokenizer.json, or its folder; eod the folder's eos token
///   BertWordPieceLowerCase, BertWordPieceCase
///                        vocab_file: a vocab.txt, followed by `<extra_id_0>` to `<extra_id_99>`;
///                        eod `[SEP]`
///   TikTokenizer         model: a `.tiktoken` file of ranks, with tiktoken_pattern, or Megatron's
///                        `.vocab.json`
///
/// @throws config_error  the type is unknown, an option is missing, or the type does not take an
///                       option.
/// @throws io_error      a file cannot be read.
/// @throws format_error  a file does not have the expected format.
std::unique_ptr<tokenizer> make_tokenizer(const tokenizer_options& options);

/// Explains why a tokenizer with these options has no end-of-document token, and tells the user
/// what to do.
/// @throws io_error, format_error  as make_tokenizer
std::string missing_eod(const tokenizer_options& options);

/// The optional parts of this build, for `--version`: "PCRE2 10.42" or "without PCRE2". Hugging
/// Face tokenizers with uncommon regular expressions need PCRE2.
std::string optional_parts();

}  // namespace millrace::tokenizer
