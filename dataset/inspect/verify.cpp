// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <millrace/dataset/detail/verify_sums.hpp>
#include <millrace/dataset/detail/verify_tokens.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/json_writer.hpp>

#include "command_line.hpp"
#include "inspect.hpp"
#include "meta.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

constexpr const char* verify_help =
    R"(usage: inspect_dataset verify PREFIX [--vocab-size V] [--json]

Checks every entry of PREFIX.idx and the size of PREFIX.bin. Also checks the
sidecar files that exist: both files against the checksums in PREFIX.sum, the
counts in PREFIX.meta, and the places in PREFIX.src against the inputs in
PREFIX.meta. If there is a PREFIX.meta but no PREFIX.sum, also checks every
token against the vocabulary size in PREFIX.meta.

Prints "PREFIX: ok" and what the dataset holds. If there are no such files and
no --vocab-size, prints "PREFIX: index ok, tokens not checked" instead. On a
fault, prints its file and byte, and exits with 1.

  PREFIX           path of the dataset, without .bin and .idx
  --vocab-size V   read all of PREFIX.bin; every token must be 0 to V - 1
  --json           print one JSON object: prefix, ok, dtype, sequences,
                   documents, tokens, tokens_checked, vocab_size (if ids were
                   compared with it), sum_root (null without PREFIX.sum),
                   src_inputs (number of inputs in PREFIX.src; null without
                   it), meta_fits (true; null without PREFIX.meta); on a
                   fault: prefix, ok, fault with file, offset_bytes and what

  inspect_dataset verify data/web_text_document
  inspect_dataset verify data/web_text_document --vocab-size 50257
)";

/// The sidecar files that were found and verified.
struct sidecars_found {
  std::optional<std::string> root;         ///< root of the checksums
  std::optional<std::int64_t> src_inputs;  ///< number of inputs in the `.src`
  bool meta = false;
};

std::string describe(const sidecars_found& beside) {
  return (beside.root ? "checksums match, root " + *beside.root : "no .sum") +
         (beside.src_inputs
              ? "; the .src places every document in " + grouped(*beside.src_inputs, "input")
              : "; no .src") +
         (beside.meta ? "; the .meta matches" : "; no .meta");
}

// The .bin is read only to verify checksums or token ids.
bool tokens_checked(std::optional<std::int64_t> vocab_size, const sidecars_found& beside) {
  return vocab_size.has_value() || beside.root.has_value();
}

std::string verdict(bool checked) {
  return checked ? "ok" : "index ok, tokens not checked (--vocab-size V checks the ids)";
}

std::string sound(const dataset::indexed_dataset& data, std::optional<std::int64_t> vocab_size,
                  const sidecars_found& beside, bool as_json) {
  if (!as_json) {
    return fmt::format(
        "{}: {}, {}, {}, {} of {}{}; {}\n", data.prefix().native(),
        verdict(tokens_checked(vocab_size, beside)), grouped(data.document_count(), "document"),
        grouped(data.sequence_count(), "sequence"), grouped(data.token_count(), "token"),
        formats::name(data.type()),
        vocab_size ? fmt::format(", each an id below {}", grouped(*vocab_size)) : std::string(),
        describe(beside));
  }
  formats::json_writer json;
  json.open('{').key("prefix").value(data.prefix().native()).key("ok").value(true);
  json.key("dtype").value(formats::name(data.type()));
  json.key("sequences").value(data.sequence_count());
  json.key("documents").value(data.document_count());
  json.key("tokens").value(data.token_count());
  json.key("tokens_checked").value(tokens_checked(vocab_size, beside));
  if (vocab_size) json.key("vocab_size").value(*vocab_size);
  json.key("sum_root");
  beside.root ? json.value(*beside.root) : json.null();
  json.key("src_inputs");
  beside.src_inputs ? json.value(*beside.src_inputs) : json.null();
  json.key("meta_fits");
  beside.meta ? json.value(true) : json.null();
  return json.close('}').text() + '\n';
}

std::string broken(const std::filesystem::path& prefix, const format_error& fault, bool as_json) {
  if (!as_json) return std::string(fault.what()) + '\n';
  formats::json_writer json;
  json.open('{').key("prefix").value(prefix.native()).key("ok").value(false);
  json.key("fault").open('{').key("file").value(fault.path().native());
  json.key("offset_bytes").value(fault.offset()).key("what").value(fault.problem()).close('}');
  return json.close('}').text() + '\n';
}

}  // namespace

int verify(const arguments& args) {
  po::options_description own;
  own.add_options()("vocab-size", po::value<std::int64_t>());
  const auto line = parse(args, own, verify_help);
  if (!line) return command::exit_done;
  auto vocab_size = line->find<std::int64_t>("vocab-size");
  if (vocab_size && *vocab_size < 1)
    throw misuse(fmt::format("--vocab-size {}: expected 1 or more", *vocab_size), verify_help);

  std::string answer;
  int code = command::exit_done;
  try {
    const dataset::indexed_dataset data(line->prefix, {.check = dataset::check_level::full});
    sidecars_found beside;
    beside.root = dataset::verify_sums(line->prefix);
    const auto meta = find_meta(data);
    beside.meta = meta.has_value();
    if (meta) check_root(data, *meta, beside.root);
    if (meta) check_all_counts(data, *meta);
    beside.src_inputs = check_sources(data, meta);
    // Without checksums, the tokens can be checked only against the vocabulary size. That check
    // reads the whole .bin.
    if (!vocab_size && meta && !beside.root) vocab_size = meta->tokenizer.vocab_size;
    if (vocab_size) dataset::verify_tokens(data, *vocab_size);
    answer = sound(data, vocab_size, beside, line->json);
  } catch (const format_error& fault) {  // a fault is a valid answer, so print it to stdout
    answer = broken(line->prefix, fault, line->json);
    code = command::exit_failed;
  }
  command::answer(answer);
  return code;
}

}  // namespace millrace::inspect
