// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/shell_word.hpp>
#include <millrace/dataset/detail/repair.hpp>
#include <millrace/dataset/detail/verify.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "command_line.hpp"
#include "data_options.hpp"
#include "dataset_list.hpp"
#include "inspect.hpp"
#include "meta.hpp"
#include "progress_line.hpp"
#include "run_flags.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

constexpr const char* verify_help =
    R"(usage: inspect_dataset verify PREFIX... [--vocab-size V] [--json]

Checks every entry of PREFIX.idx, the size of PREFIX.bin, and the sidecar files
that exist: all bytes against PREFIX.sum, the counts in PREFIX.meta, the places
in PREFIX.src, the bits of PREFIX.mask. With a .meta but no .sum, every token
is compared with its vocabulary size. Without both, and without --vocab-size,
the answer is "index ok, tokens not checked". A fault is printed with its file
and byte. Exit codes: 0 no fault, 1 a dataset is damaged, 2 wrong flags, 4 a
dataset could not be checked and no other is damaged.

  PREFIX           path of a dataset, without .bin and .idx; or a folder or a
                   quoted pattern, for all datasets there
  --vocab-size V   read all of PREFIX.bin; every token must be 0 to V - 1
  --repair pointers   write PREFIX.idx.repaired, with pointers that follow from
                   the lengths, if all else is valid; changes no other file
  --repair checksums   write PREFIX.sum.repaired for what the files hold now,
                   and .meta.repaired. It says that earlier changes are
                   unknown, unless the files have the root in PREFIX.meta
  --workers N      threads (default: one per core); affects speed only
  --json           print one JSON object: prefix, ok, dtype, sequences,
                   documents, tokens, tokens_checked, vocab_size (if ids were
                   compared); sum_root, sum_is_original (false after a repair),
                   src_inputs, meta_fits, mask_trained (tokens to be
                   predicted), null without their file; or fault: file,
                   offset_bytes, what. Of several: a list "datasets" of these,
                   or of prefix and error; counts ok, index_ok, damaged and
                   not_checked

  inspect_dataset verify data/web_text_document --vocab-size 50257
)";

/// The sidecar files that were found and verified.
struct sidecars_found {
  std::optional<dataset::verified_sums> sums;
  std::optional<std::int64_t> src_inputs;  ///< number of inputs in the `.src`
  std::optional<std::int64_t> trained;     ///< number of tokens that the `.mask` trains
  bool meta = false;
};

std::string describe(const sidecars_found& beside) {
  return (beside.sums ? "checksums match, root " + beside.sums->root : "no .sum") +
         (beside.sums && !beside.sums->are_original
              ? " (computed by a repair; earlier changes are unknown)"
              : "") +
         (beside.src_inputs
              ? "; the .src places every document in " + grouped(*beside.src_inputs, "input")
              : "; no .src") +
         (beside.meta ? "; the .meta matches" : "; no .meta") +
         (beside.trained
              ? fmt::format("; the .mask has {} to be predicted", grouped(*beside.trained, "token"))
              : "");
}

// The .bin is read only to verify checksums or token ids.
bool tokens_checked(std::optional<std::int64_t> vocab_size, const sidecars_found& beside) {
  return vocab_size.has_value() || beside.sums.has_value();
}

/// What is known about one dataset.
enum class verdict_kind { ok, index_ok, damaged, not_checked };

struct verdict {
  verdict_kind kind = verdict_kind::not_checked;
  std::string text;  ///< a line, without its end
};

/// What the user asks about every dataset.
struct verify_question {
  std::optional<std::int64_t> vocab_size;
  dataset::verify_options options;
};

/// Checks one dataset, and writes its JSON object.
///
/// @throws millrace::error  it could not be checked; then nothing is written
verdict verify_one(const std::filesystem::path& prefix, const verify_question& asked,
                   formats::json_writer& json) {
  try {
    const dataset::indexed_dataset data(prefix, {.check = dataset::check_level::full});
    sidecars_found beside;
    beside.sums = dataset::verify_sums(prefix, asked.options);
    const auto meta = find_meta(data);
    beside.meta = meta.has_value();
    if (meta) {
      check_root(data, *meta,
                 beside.sums ? std::optional(beside.sums->root) : std::optional<std::string>());
    }
    if (meta) check_all_counts(data, *meta);
    beside.src_inputs = check_sources(data, meta);
    beside.trained = check_mask(data, meta);
    // Without checksums, the tokens can be checked only against the vocabulary size. That check
    // reads the whole .bin.
    auto vocab_size = asked.vocab_size;
    if (!vocab_size && meta && !beside.sums) vocab_size = meta->tokenizer.vocab_size;
    if (vocab_size) dataset::verify_tokens(data, *vocab_size, asked.options);

    const bool checked = tokens_checked(vocab_size, beside);
    json.open('{').key("prefix").value(data.prefix().native()).key("ok").value(true);
    json.key("dtype").value(formats::name(data.type()));
    json.key("sequences").value(data.sequence_count());
    json.key("documents").value(data.document_count());
    json.key("tokens").value(data.token_count());
    json.key("tokens_checked").value(checked);
    if (vocab_size) json.key("vocab_size").value(*vocab_size);
    json.key("sum_root");
    beside.sums ? json.value(beside.sums->root) : json.null();
    json.key("sum_is_original");
    beside.sums ? json.value(beside.sums->are_original) : json.null();
    json.key("src_inputs");
    beside.src_inputs ? json.value(*beside.src_inputs) : json.null();
    json.key("meta_fits");
    beside.meta ? json.value(true) : json.null();
    json.key("mask_trained");
    beside.trained ? json.value(*beside.trained) : json.null();
    json.close('}');
    return {
        checked ? verdict_kind::ok : verdict_kind::index_ok,
        fmt::format("{}: {}, {}, {}, {} of {}{}; {}", data.prefix().native(),
                    checked ? "ok" : "index ok, tokens not checked (--vocab-size V checks the ids)",
                    grouped(data.document_count(), "document"),
                    grouped(data.sequence_count(), "sequence"),
                    grouped(data.token_count(), "token"), formats::name(data.type()),
                    vocab_size ? fmt::format(", each an id below {}", grouped(*vocab_size)) : "",
                    describe(beside))};
  } catch (const format_error& fault) {  // a fault is a valid answer
    json.open('{').key("prefix").value(prefix.native()).key("ok").value(false);
    json.key("fault").open('{').key("file").value(fault.path().native());
    json.key("offset_bytes").value(fault.offset()).key("what").value(fault.problem()).close('}');
    json.close('}');
    return {verdict_kind::damaged, fault.what()};
  }
}

/// The size of the files of a dataset, 0 if it is unknown.
std::int64_t bytes_of(const std::filesystem::path& prefix) {
  std::int64_t bytes = 0;
  for (const char* suffix : {".idx", ".bin"}) {
    std::error_code code;
    auto path = prefix;
    const auto size = std::filesystem::file_size(path += suffix, code);
    if (!code) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

std::string summary_of(const std::array<std::int64_t, 4>& counts) {
  constexpr const char* names[] = {"ok", "with tokens not checked", "damaged", "not checked"};
  std::string text;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    all += counts[i];
    if (counts[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(counts[i]), names[i]);
  }
  return grouped(all, "dataset") + ": " + text + '\n';
}

/// Checks one dataset after another. Prints each answer as soon as it is known.
int verify_all(const std::vector<std::string>& prefixes, verify_question asked, bool are_several,
               bool as_json) {
  std::int64_t total = 0;
  for (const std::string& prefix : prefixes) total += bytes_of(prefix);
  progress_line progress("verified", "byte", total);
  std::int64_t before = 0;  // bytes of the datasets before this one
  asked.options.progress = [&](std::uint64_t bytes) {
    progress.show(before + static_cast<std::int64_t>(bytes));
  };
  std::array<std::int64_t, 4> counts = {};
  formats::json_writer json;
  if (are_several) json.open('{').key("datasets").open('[');
  for (const std::string& prefix : prefixes) {
    verdict found;
    try {
      found = verify_one(prefix, asked, json);
      progress.remove();
      if (!as_json) command::answer(found.text + '\n');
    } catch (const error& e) {
      progress.remove();
      if (!are_several) throw;
      json.open('{').key("prefix").value(prefix).key("error").value(e.what()).close('}');
      command::tell(fmt::format("{}: {}\n", program_name, command::one_line(e.what())));
    }
    ++counts[static_cast<std::size_t>(found.kind)];
    before += bytes_of(prefix);
  }
  const auto count = [&](verdict_kind kind) { return counts[static_cast<std::size_t>(kind)]; };
  if (are_several) {
    json.close(']').key("ok").value(count(verdict_kind::ok));
    json.key("index_ok").value(count(verdict_kind::index_ok));
    json.key("damaged").value(count(verdict_kind::damaged));
    json.key("not_checked").value(count(verdict_kind::not_checked)).close('}');
  }
  if (as_json) command::answer(json.text() + '\n');
  if (are_several && !as_json) command::answer(summary_of(counts));
  if (count(verdict_kind::damaged) != 0) return command::exit_failed;
  return count(verdict_kind::not_checked) == 0 ? command::exit_done : command::exit_unfinished;
}

/// Prints what `--repair pointers` did, and what to do next.
int repair_pointers(const std::string& prefix, bool as_json) {
  const dataset::pointer_repair done = dataset::repair_pointers(prefix);
  const bool is_written = !done.path.empty();
  if (as_json) {
    formats::json_writer json;
    json.open('{').key("prefix").value(prefix).key("repaired");
    is_written ? json.value(done.path.native()) : json.null();
    json.key("pointers_changed").value(done.changed).key("sequences").value(done.sequences);
    json.key("proven").value(done.proven);
    command::answer(json.close('}').text() + '\n');
    return command::exit_done;
  }
  if (!is_written) {
    command::answer(fmt::format("{}.idx: all {} are right; nothing to repair\n", prefix,
                                grouped(done.sequences, "pointer")));
    return command::exit_done;
  }
  command::answer(fmt::format(
      "{}: corrected {} of {}; {}\nnext: mv -- {} {} && inspect_dataset verify {}\n",
      done.path.native(), grouped(done.changed), grouped(done.sequences, "pointer"),
      done.proven ? "the new file has the checksums in the .sum"
                  : "without a .sum, nothing proves that the lengths are the original ones",
      command::shell_word(done.path.native()), command::shell_word(prefix + ".idx"),
      command::shell_word(prefix)));
  return command::exit_done;
}

/// Writes PREFIX.meta.repaired, which has the new root, if there is a PREFIX.meta with another one.
///
/// @return the new file; empty if none was needed
std::filesystem::path write_meta(const std::string& prefix, formats::dataset_meta meta,
                                 const dataset::checksum_repair& done) {
  if (!meta.sum_root || *meta.sum_root == done.root) return {};
  meta.sum_root = done.root;
  meta.sum_version = done.proven ? formats::sum_version : formats::sum_version_repaired;
  io::atomic_file out(prefix + ".meta.repaired");
  const std::string json = formats::to_json(meta);
  out.append(std::as_bytes(std::span(json)));
  out.commit();
  return out.path();
}

/// Prints what `--repair checksums` did, and what to do next.
int repair_checksums(const std::string& prefix, dataset::verify_options options, bool as_json) {
  std::optional<formats::dataset_meta> meta;
  {
    const dataset::indexed_dataset data(prefix);  // the repair checks every entry
    meta = find_meta(data);
  }
  progress_line progress("read", "byte", bytes_of(prefix));
  options.progress = [&](std::uint64_t bytes) { progress.show(static_cast<std::int64_t>(bytes)); };
  const auto done =
      dataset::repair_checksums(prefix, meta ? meta->sum_root : std::nullopt, options);
  progress.remove();
  const bool is_written = !done.path.empty();
  const auto meta_path = meta ? write_meta(prefix, *meta, done) : std::filesystem::path();
  if (as_json) {
    formats::json_writer json;
    json.open('{').key("prefix").value(prefix);
    for (const auto& [key, path] :
         {std::pair("repaired", done.path), {"meta_repaired", meta_path}}) {
      json.key(key);
      path.empty() ? json.null() : json.value(path.native());
    }
    json.key("checksums_changed").value(done.changed).key("checksums").value(done.blocks);
    json.key("sum_root").value(done.root).key("proven").value(done.proven);
    command::answer(json.close('}').text() + '\n');
    return command::exit_done;
  }
  std::string text;
  std::string next;
  if (is_written) {
    text = fmt::format("{}: {} of {} differ from the old .sum or were missing; {}\n",
                       done.path.native(), grouped(done.changed), grouped(done.blocks, "checksum"),
                       done.proven ? "the files have the root in the .meta, so they are as they "
                                     "were written"
                                   : "it says that earlier changes are unknown");
  } else {
    text = fmt::format("{}.sum: all {} are right; nothing to repair\n", prefix,
                       grouped(done.blocks, "checksum"));
  }
  for (const auto& [path, suffix] : {std::pair(done.path, ".sum"), {meta_path, ".meta"}}) {
    if (path.empty()) continue;
    next += fmt::format("mv -- {} {} && ", command::shell_word(path.native()),
                        command::shell_word(prefix + suffix));
  }
  if (!meta_path.empty()) {
    text += fmt::format("{}: with the new root\n", meta_path.native());
  }
  if (!next.empty()) {
    text += fmt::format("next: {}inspect_dataset verify {}\n", next, command::shell_word(prefix));
  }
  command::answer(text);
  return command::exit_done;
}

}  // namespace

int verify(const arguments& args) {
  po::options_description own;
  for (const char* flag : {"vocab-size", "workers"}) {
    own.add_options()(flag, po::value<std::int64_t>());
  }
  own.add_options()("repair", po::value<std::string>());
  const auto line = parse_run_options(args, own, verify_help);
  if (!line) return command::exit_done;
  verify_question asked;
  asked.vocab_size = line->find<std::int64_t>("vocab-size");
  if (asked.vocab_size && *asked.vocab_size < 1)
    throw misuse(fmt::format("--vocab-size {}: expected 1 or more", *asked.vocab_size),
                 verify_help);
  asked.options.workers = static_cast<int>(
      std::min<std::int64_t>(count_of(*line, "workers", 1, verify_help)
                                 .value_or(std::max(1U, std::thread::hardware_concurrency())),
                             1024));
  const auto words = line->find<std::vector<std::string>>("prefix");
  if (!words) {
    throw misuse("PREFIX is required: the path of a dataset, without .bin and .idx", verify_help);
  }
  const auto what = line->find<std::string>("repair");
  if (what && *what != "pointers" && *what != "checksums") {
    throw misuse("--repair " + *what +
                     ": expected pointers or checksums, the only parts that can be repaired",
                 verify_help);
  }
  if (what && are_several(*words)) {
    throw misuse("--repair takes one PREFIX; repair one dataset at a time", verify_help);
  }
  if (what && (asked.vocab_size || (*what == "pointers" && line->find<std::int64_t>("workers")))) {
    throw misuse(
        "--repair cannot be combined with --vocab-size, and --repair pointers not with "
        "--workers",
        verify_help);
  }
  try {
    if (what) {
      const std::string prefix = dataset_prefixes(*words).front();
      return *what == "pointers" ? repair_pointers(prefix, line->json)
                                 : repair_checksums(prefix, asked.options, line->json);
    }
    return verify_all(dataset_prefixes(*words), asked, are_several(*words), line->json);
  } catch (const command::usage_error&) {
    throw;
  } catch (const format_error& e) {  // a repair was refused
    command::tell_error(program_name, e, line->json);
    return command::exit_failed;
  } catch (const std::exception& e) {
    command::tell_error(program_name, e, line->json);
    return command::exit_unfinished;
  }
}

}  // namespace millrace::inspect
