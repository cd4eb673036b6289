// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

#include "command_line.hpp"
#include "inspect.hpp"
#include "meta.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

constexpr std::int64_t usual_tokens = 256;

constexpr const char* show_help =
    R"(usage: inspect_dataset show PREFIX --doc N [--tokens M | --all] [--json]
           [--tokenizer-type TYPE [--tokenizer-model PATH] [--vocab-file FILE]
           [--merge-file FILE] [--vocab-size V] ...]

Prints a document, sequence by sequence: the ids, and the text if the tokenizer
is known. With a PREFIX.src, also prints where the document comes from: input,
line, and bytes of the decompressed text.

  PREFIX       path of the dataset, without .bin and .idx
  --doc N      document, counted from 0
  --tokens M   print at most its first M tokens (default: 256)
  --all        print all of its tokens
  --json       print one JSON object: prefix, dtype, document, source (input,
               line, begin, end; null without PREFIX.src), sequences, tokens,
               tokens_shown, and contents: a list of sequence, tokens, mode
               (multimodal only), ids, text
  --force      decode even if another tokenizer made the dataset

The tokenizer flags are those of preprocess_data. Without them, show uses the
tokenizer in PREFIX.meta if it needs no files (ByteLevelTokenizer,
NullTokenizer). With them, the tokenizer must have the fingerprint in
PREFIX.meta.

  inspect_dataset show data/web_text_document --doc 0
  inspect_dataset show data/web_text_document --doc 7 --all \
      --tokenizer-type HuggingFaceTokenizer --tokenizer-model llama/
)";

/// The place from which the document was read.
struct source {
  std::string input;
  formats::source_place place;
};

/// A sequence of the document, with the tokens that are shown.
struct piece {
  std::int64_t sequence;
  std::int64_t tokens;  // length of the whole sequence
  dataset::token_view shown;
};

struct excerpt {
  std::int64_t document;
  std::optional<source> from;
  std::int64_t sequences;
  std::int64_t tokens;
  std::int64_t tokens_shown;
  std::vector<piece> pieces;
};

std::optional<source> find_source(const dataset::indexed_dataset& data, std::int64_t document) {
  const auto sources = dataset::document_sources::find(data);
  if (!sources) return std::nullopt;
  const formats::source_place place = sources->at(document);
  return source{std::string(sources->input_name(place.input)), place};
}

excerpt find(const dataset::indexed_dataset& data, std::int64_t document, std::int64_t limit) {
  const auto range = data.document(document);
  excerpt result{document, find_source(data, document), range.size(), 0, 0, {}};
  for (std::int64_t i = range.first; i < range.last; ++i) {
    const auto tokens = data.sequence(i);
    const std::int64_t count = std::min(tokens.size(), limit - result.tokens_shown);
    if (count > 0 || tokens.empty()) {
      result.pieces.push_back({i, tokens.size(), tokens.subview(0, count)});
    }
    result.tokens += tokens.size();
    result.tokens_shown += count;
  }
  return result;
}

std::string decode(const tokenizer::tokenizer& from, const dataset::token_view& tokens) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(tokens.size()));
  tokens.copy_to(std::span(ids));
  return from.decode(ids);
}

bool is_float(formats::dtype type) {
  return type == formats::dtype::float32 || type == formats::dtype::float64;
}

std::string as_json(const dataset::indexed_dataset& data, const excerpt& found,
                    const tokenizer::tokenizer* tokenizer) {
  formats::json_writer json;
  json.open('{').key("prefix").value(data.prefix().native());
  json.key("dtype").value(formats::name(data.type())).key("document").value(found.document);
  json.key("source");
  if (found.from) {
    const auto& [input, place] = *found.from;
    json.open('{').key("input").value(input).key("line").value(place.line);
    json.key("begin").value(place.begin).key("end").value(place.end).close('}');
  } else {
    json.null();
  }
  json.key("sequences").value(found.sequences).key("tokens").value(found.tokens);
  json.key("tokens_shown").value(found.tokens_shown).key("contents").open('[');
  for (const auto& [sequence, tokens, shown] : found.pieces) {
    json.open('{').key("sequence").value(sequence).key("tokens").value(tokens);
    if (data.is_multimodal()) json.key("mode").value(data.mode(sequence));
    json.key("ids").open('[');
    for (std::int64_t i = 0; i < shown.size(); ++i) {
      if (!is_float(data.type())) {
        json.value(shown[i]);
      } else if (std::isfinite(shown.as_double(i))) {
        json.value(shown.as_double(i));
      } else {
        json.null();  // the token is not finite, and JSON cannot represent it
      }
    }
    json.close(']');
    if (tokenizer != nullptr) json.key("text").value(decode(*tokenizer, shown));
    json.close('}');
  }
  return json.close(']').close('}').text() + '\n';
}

std::string as_text(const dataset::indexed_dataset& data, const excerpt& found,
                    const tokenizer::tokenizer* tokenizer) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{}, document {}: {}, {}\n", data.prefix().native(), found.document,
                 grouped(found.sequences, "sequence"), grouped(found.tokens, "token"));
  if (found.from) {
    const auto& [input, place] = *found.from;
    fmt::format_to(out, "from {}, line {}, bytes {} to {}\n", command::one_line(input), place.line,
                   place.begin, place.end);
  }
  for (const auto& [sequence, tokens, shown] : found.pieces) {
    fmt::format_to(out, "sequence {}: {}", sequence, grouped(tokens, "token"));
    if (data.is_multimodal()) fmt::format_to(out, ", mode {}", data.mode(sequence));
    text += "\nids:";
    for (std::int64_t i = 0; i < shown.size(); ++i) {
      if (is_float(data.type())) {
        fmt::format_to(out, " {}", shown.as_double(i));
      } else {
        fmt::format_to(out, " {}", shown[i]);
      }
    }
    text += shown.size() < tokens ? " ...\n" : "\n";
    if (tokenizer != nullptr) fmt::format_to(out, "text:\n{}\n", decode(*tokenizer, shown));
  }
  return text;
}

po::options_description own_options() {
  po::options_description own;
  auto add = own.add_options();
  add("doc", po::value<std::int64_t>());
  add("tokens", po::value<std::int64_t>());
  add("all", po::bool_switch());
  add("force", po::bool_switch());
  own.add(tokenizer::tokenizer_flags());
  return own;
}

using tokenizer_identity = formats::tokenizer_identity;

/// The tokenizer that the flags select; null if they select none.
std::unique_ptr<tokenizer::tokenizer> named_tokenizer(const command_line& line) {
  try {
    const auto options = tokenizer::tokenizer_options_of(line.values);
    return options ? tokenizer::open_tokenizer(*options) : nullptr;
  } catch (const command::usage_error& e) {
    throw misuse(e.what(), show_help);
  }
}

/// The tokenizer that PREFIX.meta names, if it can be built without files; otherwise null.
std::unique_ptr<tokenizer::tokenizer> tokenizer_of(const tokenizer_identity& made_by) {
  tokenizer::tokenizer_options options;
  options.type = made_by.type;
  if (made_by.type == "NullTokenizer") {
    options.vocab_size = made_by.vocab_size;
    if (made_by.eod != made_by.vocab_size - 1) options.null_eod_id = made_by.eod;
  } else if (made_by.type != "ByteLevelTokenizer") {
    return nullptr;
  }
  try {
    auto made = tokenizer::make_tokenizer(options);
    return made->fingerprint() == made_by.fingerprint ? std::move(made) : nullptr;
  } catch (const error&) {
    return nullptr;  // e.g. a vocabulary that this version has no tokenizer for
  }
}

void expect_same(const tokenizer::tokenizer& named, const tokenizer_identity& made_by) {
  if (named.fingerprint() == made_by.fingerprint) return;
  throw config_error(fmt::format(
      "the dataset was made with another tokenizer: {} of {} ids with fingerprint {}, but the "
      "flags name one of {} ids with fingerprint {}; pass the flags and files that the dataset was "
      "made with, --eod-token included, or --force",
      command::one_line(made_by.type), made_by.vocab_size, made_by.fingerprint.substr(0, 12),
      named.vocab_size(), named.fingerprint().substr(0, 12)));
}

/// The tokenizer of the dataset; null if it is unknown.
///
/// @param named   the tokenizer that the flags select, or null
/// @param forced  if true, `named` may differ from the tokenizer in PREFIX.meta
std::unique_ptr<tokenizer::tokenizer> find_tokenizer(std::unique_ptr<tokenizer::tokenizer> named,
                                                     bool forced,
                                                     const dataset::indexed_dataset& data) {
  if (forced) return named;
  const auto meta = find_meta(data);
  if (!meta) return named;
  if (named) {
    expect_same(*named, meta->tokenizer);
    return named;
  }
  auto made = tokenizer_of(meta->tokenizer);
  if (!made) {
    command::tell(fmt::format(
        "{}: ids only; to see the text, pass --tokenizer-type {} and the files that the dataset "
        "was made with\n",
        program_name, command::one_line(meta->tokenizer.type)));
  }
  return made;
}

/// The largest number of tokens to show.
std::int64_t token_limit(const command_line& line) {
  const auto tokens = line.find<std::int64_t>("tokens");
  const bool all = line.values["all"].as<bool>();
  if (tokens && all)
    throw misuse("--tokens and --all exclude each other; pass one of them", show_help);
  if (tokens && *tokens < 0)
    throw misuse(fmt::format("--tokens {}: expected 0 or more", *tokens), show_help);
  return all ? std::numeric_limits<std::int64_t>::max() : tokens.value_or(usual_tokens);
}

}  // namespace

int show(const arguments& args) {
  const auto line = parse(args, own_options(), show_help);
  if (!line) return command::exit_done;
  const auto document = line->find<std::int64_t>("doc");
  if (!document)
    throw misuse("--doc is required: the number of the document, counted from 0", show_help);
  if (*document < 0)
    throw misuse(fmt::format("--doc {}: expected 0 or more", *document), show_help);
  const std::int64_t limit = token_limit(*line);
  const bool forced = line->values["force"].as<bool>();
  auto named = named_tokenizer(*line);
  if (forced && !named) throw misuse("--force requires --tokenizer-type", show_help);

  const dataset::indexed_dataset data(line->prefix);
  const auto tokenizer = find_tokenizer(std::move(named), forced, data);
  if (*document >= data.document_count()) {
    throw config_error(fmt::format(
        "--doc {}: expected a document of {}, which has {}", *document, data.prefix().native(),
        data.document_count() == 0 ? std::string("no documents")
                                   : fmt::format("documents 0 to {}", data.document_count() - 1)));
  }
  const excerpt found = find(data, *document, limit);
  command::answer(line->json ? as_json(data, found, tokenizer.get())
                             : as_text(data, found, tokenizer.get()));
  if (found.tokens_shown < found.tokens) {
    command::tell(fmt::format("{}: showed {} of {} tokens; --all shows the rest\n", program_name,
                              grouped(found.tokens_shown), grouped(found.tokens)));
  }
  return command::exit_done;
}

}  // namespace millrace::inspect
