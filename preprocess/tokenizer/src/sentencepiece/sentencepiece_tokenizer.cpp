// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/sentencepiece_tokenizer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/io/file_mapping.hpp>

#include "core/added_tokens.hpp"
#include "core/composed_tokenizer.hpp"
#include "sentencepiece/extra_spaces.hpp"
#include "sentencepiece/model_file.hpp"
#include "sentencepiece/sentencepiece_decoder.hpp"
#include "sentencepiece/text_front.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Real files have a few megabytes. A larger file is a mistake by the user. Reading it would take
// many times its size in memory.
constexpr std::size_t max_file_bytes = std::size_t{1} << 30;

std::unique_ptr<const section_engine> engine_of(const sentencepiece_model& model,
                                                const sentencepiece_options& options) {
  switch (model.type) {
    case model_type::bpe:
      return make_sentencepiece_bpe_engine(model, options.tuning);
    case model_type::unigram:
      return make_sentencepiece_unigram_engine(model, options.tuning);
    case model_type::word:
      throw config_error(
          "a SentencePiece model of type WORD is not supported, only BPE and UNIGRAM");
    case model_type::character:
      break;
  }
  throw config_error("a SentencePiece model of type CHAR is not supported, only BPE and UNIGRAM");
}

// True if the model's normalization reduces two spaces to one. Megatron tests this in the same way.
bool drops_extra_spaces(const sentencepiece_model& model) {
  const seam_table seams;
  const text_front front(model, seams, instruction_set::portable);
  std::string one;
  std::string two;
  return front.normalize("x y", one) == front.normalize("x  y", two);
}

// Creates a finder for control pieces in texts. SentencePiece itself never recognizes them in
// texts.
added_token_finder finder_of(const sentencepiece_model& model) {
  std::vector<added_token> tokens;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const auto& piece = model.pieces[id];
    if (piece.type != piece_type::control || piece.text.empty()) continue;
    tokens.push_back({.content = std::string(piece.text), .id = static_cast<std::int32_t>(id)});
  }
  return added_token_finder(std::move(tokens));
}

std::string_view policy_of(special_tokens_in_text policy) {
  if (policy == special_tokens_in_text::allow) return "special_tokens allow\n";
  return policy == special_tokens_in_text::error ? "special_tokens error\n" : "";
}

// Returns `made` with the end-of-document token `name`. If `name` is empty, returns `made`
// unchanged.
std::unique_ptr<tokenizer> with_eod_of(std::unique_ptr<tokenizer> made,
                                       const sentencepiece_model& model, const std::string& name) {
  if (name.empty()) return made;
  const auto found = std::ranges::find_if(model.pieces, [&](const auto& piece) {
    return piece.type == piece_type::control && piece.text == name;
  });
  if (found == model.pieces.end()) return with_eod(std::move(made), name);
  return with_eod(std::move(made), static_cast<std::int32_t>(found - model.pieces.begin()));
}

}  // namespace

std::unique_ptr<tokenizer> make_sentencepiece_tokenizer(const std::filesystem::path& path,
                                                        const sentencepiece_options& options) {
  const io::file_mapping file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  try {
    if (bytes.size() > max_file_bytes) {
      throw format_error(max_file_bytes, "the file is too large for a tokenizer's");
    }
    const sentencepiece_model model = parse_sentencepiece_model(bytes);
    tokenizer_parts parts;
    parts.vocab_size = static_cast<std::int64_t>(model.pieces.size());
    if (model.eos_id >= 0) parts.eod = model.eos_id;
    parts.engine = engine_of(model, options);
    if (!options.ignore_extra_whitespaces && drops_extra_spaces(model)) {
      parts.engine = make_extra_space_engine(std::move(parts.engine));
    }
    parts.decoder = std::make_unique<sentencepiece_decoder>(model);
    parts.special_tokens_are_faults = options.special_tokens == special_tokens_in_text::error;
    if (parts.special_tokens_are_faults ||
        options.special_tokens == special_tokens_in_text::allow) {
      parts.raw_tokens = finder_of(model);
    }
    parts.fingerprint = formats::sha256_hex(
        "type SentencePieceTokenizer\nmodel " + formats::sha256_hex(bytes) +
        "\nignore_extra_whitespaces " + (options.ignore_extra_whitespaces ? "true" : "false") +
        "\n" + std::string(policy_of(options.special_tokens)));
    return with_eod_of(std::make_unique<composed_tokenizer>(std::move(parts)), model,
                       options.eod_token);
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

}  // namespace millrace::tokenizer::detail
