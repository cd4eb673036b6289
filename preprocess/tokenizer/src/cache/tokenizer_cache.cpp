// SPDX-License-Identifier: Apache-2.0
#include "cache/tokenizer_cache.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/formats/detail/sha256_interleaved.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "bpe/byte_bpe_engine.hpp"
#include "cache/cache_file.hpp"
#include "core/composed_tokenizer.hpp"
#include "core/table_io.hpp"
#include "hugging_face/byte_level.hpp"
#include "hugging_face/decoders.hpp"
#include "hugging_face/hugging_face_tokenizer.hpp"
#include "hugging_face/json_node.hpp"
#include "hugging_face/read_components.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Describes a value with its size, so that two different lists never give the same text.
std::string entry(std::string_view name, std::string_view value) {
  return std::string(name) + " " + std::to_string(value.size()) + " " + std::string(value) + "\n";
}

template <class Number>
std::string entry(std::string_view name, const std::optional<Number>& value) {
  return entry(name, value ? std::to_string(*value) : "none");
}

std::string entry_of_file(std::string_view name, const std::filesystem::path& path) {
  const io::file_mapping file(path);
  const auto digest = formats::sha256_interleaved(file.bytes());
  return entry(name, formats::hex(std::as_bytes(std::span(digest))));
}

// The files that make_tokenizer() reads.
std::string entries_of_files(const tokenizer_options& options) {
  std::string entries;
  if (!options.vocab_file.empty()) entries += entry_of_file("vocab", options.vocab_file);
  if (!options.merge_file.empty()) entries += entry_of_file("merges", options.merge_file);
  if (options.model.empty()) return entries;
  if (!io::is_folder(options.model)) return entries + entry_of_file("model", options.model);
  for (const char* const name : files_of_tokenizer_folder) {
    const std::filesystem::path path = options.model / name;
    entries += io::is_there(path) ? entry_of_file(name, path) : entry(name, "none");
  }
  return entries;
}

cache_key key_of(const tokenizer_options& options, std::string_view build) {
  std::string text =
      entry("build", build) + entry("parts", optional_parts()) + entry("type", options.type) +
      entry("vocab_size", options.vocab_size) + entry("eod_token", options.eod_token) +
      entry("pattern", options.tiktoken_pattern) +
      entry("specials", options.tiktoken_num_special_tokens) +
      entry("in_text", std::to_string(static_cast<int>(options.in_text))) +
      entry("template", options.hf_include_special_tokens ? "yes" : "no") +
      entry("spaces", options.sentencepiece_ignore_extra_whitespaces ? "one" : "all");
  for (const std::string& token : options.special_tokens) text += entry("special", token);
  return formats::sha256().update(text + entries_of_files(options)).finish();
}

// One list for both directions; table_writer and table_reader are the `io`.
template <class Io, class Token>
void token_fields(Io& io, Token& token) {
  io(token.content);
  io(token.id);
  io(token.special);
  io(token.normalized);
  io(token.single_word);
  io(token.strips_left);
  io(token.strips_right);
  io(token.stays_text);
}

template <class Io, class Parts>
void part_fields(Io& io, Parts& parts) {
  io(parts.ids_before);
  io(parts.ids_behind);
  io(parts.special_tokens_are_faults);
  io(parts.vocab_size);
  io(parts.normalizer_json);
  io(parts.decoder_json);
  io(parts.has_decoder_steps);
  io(parts.trims);
  io(parts.token_spaces);
  io(parts.offsets_fault);
}

void write_finder(table_writer& out, const added_token_finder& finder) {
  out(std::uint64_t{finder.tokens().size()});
  for (const added_token& token : finder.tokens()) token_fields(out, token);
}

added_token_finder read_finder(table_reader& in) {
  std::vector<added_token> tokens;
  for (auto count = in.number<std::uint64_t>(); count > 0; --count) {
    token_fields(in, tokens.emplace_back());
  }
  return added_token_finder(std::move(tokens));
}

// Returns the bytes of the parts from which `made` can be put together again, or an empty buffer if
// an engine or a decoder of another kind is among them.
table_writer bytes_of(const tokenizer& made) {
  table_writer out;
  const composed_tokenizer* const composed = composed_of(made);
  if (composed == nullptr) return out;
  const tokenizer_parts& parts = composed->parts();
  const section_engine::table_form form = parts.engine->form();
  const token_table* const tokens = parts.decoder->tokens();
  if (form == section_engine::table_form::none || tokens == nullptr ||
      (parts.normal != nullptr && parts.normalizer_json.empty())) {
    return out;
  }
  part_fields(out, parts);
  out(made.fingerprint());
  out(made.eod().has_value());
  out(made.eod().value_or(0));
  out(std::uint64_t{parts.notes.size()});
  for (const std::string& note : parts.notes) out(note);
  write_finder(out, parts.raw_tokens);
  write_finder(out, parts.normalized_tokens);
  out(form);
  parts.engine->write(out);
  token_table::fields(out, *tokens);
  return out;
}

std::unique_ptr<const detokenizer> decoder_of(const tokenizer_parts& parts, token_table tokens) {
  if (!parts.has_decoder_steps) return std::make_unique<byte_detokenizer>(std::move(tokens));
  std::vector<std::string> notes;  // they are among the notes in the file
  if (parts.decoder_json.empty()) {
    return make_chain_detokenizer(std::move(tokens), read_decoder(nullptr, notes));
  }
  const json_document document(parts.decoder_json);
  const json_node root(document);
  return make_chain_detokenizer(std::move(tokens), read_decoder(&root, notes));
}

std::unique_ptr<tokenizer> tokenizer_of(cache_contents contents) {
  table_reader in(contents.bytes);
  tokenizer_parts parts;
  parts.memory = std::move(contents.memory);
  part_fields(in, parts);
  in(parts.fingerprint);
  const bool has_eod = in.number<bool>();
  const auto eod = in.number<std::int32_t>();
  if (has_eod) parts.eod = eod;
  for (auto count = in.number<std::uint64_t>(); count > 0; --count) in(parts.notes.emplace_back());
  parts.raw_tokens = read_finder(in);
  parts.normalized_tokens = read_finder(in);
  const auto form = in.number<section_engine::table_form>();
  parts.engine = read_byte_bpe_engine(in);
  if (form == section_engine::table_form::spaced_byte_bpe) {
    parts.engine = with_prefix_space(std::move(parts.engine));
  }
  if (!parts.normalizer_json.empty()) {
    const json_document document(parts.normalizer_json);
    parts.normal = read_normalizer(json_node(document));
  }
  token_table tokens;
  token_table::fields(in, tokens);
  parts.decoder = decoder_of(parts, std::move(tokens));
  return std::make_unique<composed_tokenizer>(std::move(parts));
}

// The tokenizer in a cache file, or null if there is no valid file.
std::unique_ptr<tokenizer> read_tokenizer(const std::filesystem::path& path, const cache_key& key) {
  cache_contents contents = read_cache_file(path, key);
  if (!contents.memory) return nullptr;
  try {
    return tokenizer_of(std::move(contents));
  } catch (const error&) {
    return nullptr;
  }
}

std::string not_used(const tokenizer_options& options, const std::string& reason) {
  return "--tokenizer-cache " + options.cache.string() + " is not used: " + reason +
         "; the tokenizer is loaded from its files";
}

}  // namespace

std::unique_ptr<tokenizer> make_with_cache(const tokenizer_options& options,
                                           const std::function<std::unique_ptr<tokenizer>()>& make,
                                           std::string_view build) {
  std::string fault;
  std::filesystem::path path;
  cache_key key{};
  try {
    fault = fault_of_cache_folder(options.cache);
    if (fault.empty()) {
      key = key_of(options, build);
      path = options.cache / (formats::hex(std::as_bytes(std::span(key))) + ".tables");
      if (auto found = read_tokenizer(path, key)) return found;
    }
  } catch (const error& e) {
    // If the tokenizer's files are the problem, make() reports it.
    fault = e.what();
  }
  std::unique_ptr<tokenizer> made = make();
  if (!fault.empty()) return with_note(std::move(made), not_used(options, fault));
  const table_writer tables = bytes_of(*made);
  if (tables.bytes().empty()) {
    return with_note(std::move(made), not_used(options, "only byte-level BPE has tables to keep"));
  }
  try {
    // If a file was changed while it was read, nobody knows to which contents the tables belong.
    if (key_of(options, build) == key) write_cache_file(path, key, tables.bytes());
  } catch (const error& e) {
    return with_note(std::move(made), not_used(options, e.what()));
  }
  return made;
}

}  // namespace millrace::tokenizer::detail
