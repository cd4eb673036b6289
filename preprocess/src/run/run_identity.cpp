// SPDX-License-Identifier: Apache-2.0
#include "run/run_identity.hpp"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>

#include "input/byte_source.hpp"
#include "input/line_ends.hpp"
#include "input/seekable_input.hpp"
#include "output/dataset_paths.hpp"
#include "record/fim_options.hpp"
#include "run/run_meta.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

// Returns the policy for comparison. Treats `fail` and `skip` as equal: a run that failed at its
// first bad record has dropped no record, so it may be resumed with `skip`.
std::string policy_of(const run_options& options) {
  return options.on_bad_record == bad_record_policy::quarantine ? "quarantine" : "fail or skip";
}

using tell_function = std::function<void(const std::string&)>;

// Returns whether a file still has the text that was read. If the file was read to its end, it must
// also still end there.
bool has_text(const input_file& file, const input_total& total, bool to_its_end,
              const run_options& options, const stop_flag& stop) {
  const std::uint64_t largest_part_bytes = options.limits.largest_part_bytes();
  std::shared_ptr<const seekable_input> seekable;
  if (total.begin != 0) {
    seekable = seekable_input::open(file, largest_part_bytes);
    if (!seekable || seekable->size() < total.begin) return false;
  }
  const auto source = seekable ? seekable->open_at(total.begin) : open_input(file);
  std::vector<std::byte> chunk(chunk_bytes);
  std::uint32_t crc = 0;
  char last = '\n';
  std::uint64_t left = total.text_bytes;
  while (left > 0) {
    stop.check();
    const auto part = std::span(chunk).first(std::min<std::uint64_t>(left, chunk.size()));
    const std::size_t n = source->read(part);
    if (n == 0) return false;
    crc = formats::crc32c(part.first(n), crc);
    last = static_cast<char>(part[n - 1]);
    left -= n;
  }
  if (crc != total.crc32c) return false;
  const bool ended = source->read(std::span(chunk).first(1)) == 0;
  return ended || (!to_its_end && ends_line(last, static_cast<char>(chunk.front())));
}

/// An input that must be read again and compared.
struct comparison {
  std::size_t input;
  input_total total;  ///< the part of the input that was read
  bool to_its_end;    ///< the input was read to its end
};

// Reads inputs again, and calls `differs` for each input whose text differs from the text that was
// read before.
//
// @param if_stopped  says what state the output is in; for the message of `stopped`
template <class Differs>
void compare_inputs(std::span<const comparison> comparisons, const std::string& why,
                    const run_options& options, const tell_function& tell,
                    const std::string& if_stopped, Differs&& differs) {
  if (comparisons.empty()) return;
  std::uint64_t bytes = 0;
  for (const comparison& each : comparisons) bytes += each.total.text_bytes;
  const auto count = static_cast<std::int64_t>(comparisons.size());
  tell(fmt::format("--resume: reading {} again ({:.1f} MB) to compare {}: {}",
                   command::counted(count, "input"), static_cast<double>(bytes) / 1e6,
                   count == 1 ? "its checksum" : "their checksums", why));
  const auto start = std::chrono::steady_clock::now();
  const stop_flag stop(options.stop, if_stopped + "; pass --resume to compare the inputs again");
  for (const comparison& each : comparisons) {
    const input_file& file = options.inputs[each.input];
    if (!has_text(file, each.total, each.to_its_end, options, stop)) differs(each);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  tell(fmt::format("--resume: compared {} in {:.1f} s", command::counted(count, "input"),
                   taken.count()));
}

[[noreturn]] void refuse_changed(const input_file& file) {
  throw config_error(
      fmt::format("--resume: {} has changed since the run read it; pass the same file, or "
                  "--overwrite to start again",
                  display_path(file).string()));
}

// Returns the sidecars that P.meta says the dataset has.
std::vector<sidecar> sidecars_of(const formats::dataset_meta& meta) {
  std::vector<sidecar> all;
  if (meta.sum_version) all.push_back(sidecar::sum);
  if (meta.src_version) all.push_back(sidecar::src);
  if (meta.mask) all.push_back(sidecar::mask);
  if (meta.src_version && meta.counts.duplicates != 0) all.push_back(sidecar::duplicates);
  const auto met = [](const auto& kind) { return kind.second != 0; };
  if (meta.on_bad_record == "quarantine" && std::ranges::any_of(meta.counts.bad_records, met)) {
    all.push_back(sidecar::bad);
  }
  return all;
}

void expect_sidecars(const dataset_paths& paths, const formats::dataset_meta& meta) {
  for (const sidecar which : sidecars_of(meta)) {
    if (is_file(paths.of(which))) continue;
    throw config_error(fmt::format(
        "--resume: {} lists {}, which is missing; put it back, or pass --overwrite to start again",
        paths.of(sidecar::meta).string(), paths.of(which).string()));
  }
}

std::int64_t nanoseconds(const struct ::timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

std::int64_t now_nanoseconds() {
  struct ::timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now);
}

std::int64_t modified_nanoseconds(const std::filesystem::path& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) throw io_error(path, "stat", errno);
  return nanoseconds(status.st_mtim);
}

// Returns the latest time at which the file at `path` may have been changed or replaced. The
// modification time would not be enough: cp -p, mv, tar and links can put a file with an old
// modification time at `path`, but not one with an old change time.
std::int64_t changed_nanoseconds(const std::filesystem::path& path) {
  struct ::stat file {};
  struct ::stat link {};
  if (::stat(path.c_str(), &file) != 0 || ::lstat(path.c_str(), &link) != 0) {
    throw io_error(path, "stat", errno);
  }
  return std::max(
      {nanoseconds(file.st_mtim), nanoseconds(file.st_ctim), nanoseconds(link.st_ctim)});
}

bool has_size(const input_file& file, const formats::input_extent& extent) {
  return file.compressed_with != compression::none || extent.text_bytes == file.size_bytes;
}

}  // namespace

run_identity identity_of(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                         const run_options& options) {
  run_identity identity;
  const auto add = [&](std::string name, std::string value) {
    identity.emplace_back(std::move(name), std::move(value));
  };
  for (const text_key& key : options.keys) {
    add(options.conversations ? "--messages-key"
        : key.path.size() > 1 ? "--text-key"
                              : "--json-keys",
        key.name);
  }
  add("--split-sentences", options.sentences ? options.sentences->language : "off");
  if (options.sentences) add("--keep-newlines", options.sentences->keep_newlines ? "on" : "off");
  if (options.conversations) {
    for (const auto& [name, value] : options.conversations->settings) add(name, value);
  }
  add("tokenizer fingerprint", tokenizer.fingerprint());
  add("dtype", std::string(name(encoding.dtype)));
  add("--append-eod", encoding.append_eod ? std::to_string(*encoding.append_eod) : "off");
  add("--on-bad-record", policy_of(options));
  add("checksums", options.checksums ? "on" : "off");
  add("provenance", options.provenance ? "on" : "off");
  if (options.fim) {
    for (const auto& [name, value] : settings_of(*options.fim)) add(name, value);
  }
  if (options.sample) {
    add("--sample-rate", fmt::format("{}", options.sample->rate));
    add("--sample-seed", std::to_string(options.sample->seed));
  }
  if (options.most_tokens) add("--max-tokens", std::to_string(*options.most_tokens));
  if (options.drop_duplicates) add("--drop-duplicates", name_of(*options.drop_duplicates));
  if (options.partitions > 1) add("--partitions", std::to_string(options.partitions));
  if (options.task) {
    const auto place = [&](const text_place& at) {
      const bool has_rows = at.input < options.inputs.size() && options.inputs[at.input].has_rows();
      return fmt::format("{} {} of input {}", has_rows ? "row" : "byte", at.offset, at.input);
    };
    add("--task", fmt::format("{}/{}", options.task->id.index, options.task->id.of));
    add("what the task reads, which the sizes of all inputs decide",
        fmt::format("from {} to {}", place(options.task->begin), place(options.task->end)));
  }
  add("number of inputs", std::to_string(options.inputs.size()));
  for (const input_file& file : options.inputs) add("an input", file.path.string());
  return identity;
}

std::vector<input_stamp> stamps_of(std::span<const input_file> inputs) {
  std::vector<input_stamp> stamps;
  for (const input_file& file : inputs) {
    struct ::stat status {};
    input_stamp stamp;
    if (file.regular) {
      if (::stat(file.path.c_str(), &status) != 0) throw io_error(file.path, "stat", errno);
      stamp = {static_cast<std::uint64_t>(status.st_size), nanoseconds(status.st_mtim),
               nanoseconds(status.st_ctim)};
    }
    stamps.push_back(stamp);
  }
  return stamps;
}

bool is_unchanged(const input_stamp& then, const input_stamp& now, bool trust_inputs) {
  return then.size_bytes == now.size_bytes &&
         then.modified_nanoseconds == now.modified_nanoseconds &&
         (trust_inputs || then.changed_nanoseconds == now.changed_nanoseconds);
}

resumed_inputs expect_same_run(const journal& journal, const run_identity& identity,
                               const run_options& options, const tell_function& tell) {
  if (const auto what = difference(*journal.identity(), identity)) {
    throw config_error(
        fmt::format("--resume: the interrupted run had other settings ({}); pass the same flags, "
                    "or --overwrite to start again",
                    *what));
  }
  resumed_inputs found{.stamps = stamps_of(options.inputs)};
  if (!journal.state()) return found;
  const run_progress& state = *journal.state();
  const task_share share = options.share();
  const bool damaged = state.damaged && !journal.finished();
  std::vector<comparison> comparisons;
  bool only_change_times = true;
  // If all was read, the inputs after the last one with text must still be empty.
  const std::size_t known = state.all_read ? options.inputs.size() : state.inputs.size();
  for (std::size_t i = 0; i < known; ++i) {
    if (!options.inputs[i].regular) {
      // A pipe can be read only once. Its text is compared later, when the run skips the part that
      // was already read.
      found.restart = found.restart || (damaged && i == state.next.input);
      continue;
    }
    const input_stamp& then = journal.stamps().at(i);
    if (is_unchanged(then, found.stamps[i], options.trust_inputs)) {
      // With --trust-inputs, this input is not compared. Keep its old change time, so that a later
      // run without --trust-inputs compares it.
      found.stamps[i].changed_nanoseconds = then.changed_nanoseconds;
      continue;
    }
    const input_total total = i < state.inputs.size() ? state.inputs[i] : input_total();
    if (!share.has_start_of(i) && total.text_bytes == 0)
      continue;  // nothing of it was read for this task
    only_change_times = only_change_times && is_unchanged(then, found.stamps[i], true);
    comparisons.push_back({i, total, state.has_read_all_of(i) && i < share.end.input});
  }
  const char* const why =
      !only_change_times
          ? "the size or modification time differs from the journal"
          : "the size and modification time match the journal, but the inode change time "
            "does not; --trust-inputs skips this";
  const auto differs = [&](const comparison& each) {
    if (!damaged || each.input != state.next.input) refuse_changed(options.inputs[each.input]);
    found.restart = true;
  };
  compare_inputs(comparisons, why, options, tell, "nothing was written", differs);
  return found;
}

void expect_as_finished(std::span<const std::filesystem::path> prefixes,
                        std::span<const formats::dataset_meta> metas, const run_options& options,
                        const tell_function& tell, const std::string& if_stopped) {
  for (std::size_t key = 0; key < prefixes.size(); ++key) {
    expect_sidecars(dataset_paths(prefixes[key]), metas[key]);
  }
  // All outputs have the same inputs, so look only at the first output.
  const dataset_paths paths(prefixes.front());
  const auto meta_path = paths.of(sidecar::meta);
  const auto written = modified_nanoseconds(meta_path);
  // Use dates only if P.meta is not newer than the clock. If the clock was set back, dates do not
  // show which file was written first.
  const bool dated = options.trust_dates && written <= now_nanoseconds();
  const task_share share = options.share();
  std::vector<comparison> newer;
  const auto refuse = [&](std::size_t input) {
    throw config_error(
        fmt::format("--resume: {} has changed since {} was made from it; pass the same file, or "
                    "--overwrite to start again",
                    display_path(options.inputs[input]).string(), paths.prefix.string()));
  };
  const auto parts = extents_of(metas.front(), options).value();
  for (const input_part& part : parts) {
    const input_file& file = options.inputs[part.input];
    if (!file.regular) continue;
    // A run that ended at --max-tokens may have read only a part of its last input.
    const bool cut = was_cut_within(metas.front(), part.extent);
    if (!cut && share.has_all_of(part.input) && !has_size(file, part.extent)) refuse(part.input);
    const auto dated_at =
        options.trust_inputs ? modified_nanoseconds(file.path) : changed_nanoseconds(file.path);
    if (dated && dated_at < written) continue;
    const input_total total{.begin = part.extent.begin,
                            .text_bytes = part.extent.text_bytes,
                            .lines = part.extent.lines,
                            .crc32c = part.extent.crc32c};
    newer.push_back({part.input, total, !cut && part.input < share.end.input});
  }
  const std::string why = fmt::format("newer than {}", meta_path.string());
  compare_inputs(newer, why, options, tell, if_stopped,
                 [&](const comparison& each) { refuse(each.input); });
}

}  // namespace millrace::preprocess
