// SPDX-License-Identifier: Apache-2.0
#include "run/run_identity.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/crc32c.hpp>

#include "input/byte_source.hpp"
#include "input/seekable_input.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

// A run that ends with its first bad record has met none, so it may go on as one that drops them.
std::string policy_of(const run_options& options) {
  return options.on_bad_record == bad_record_policy::quarantine ? "quarantine" : "fail or skip";
}

// Whether a line that ended with `last` at the end of a file still ends there now that the byte
// `next` follows.
bool ends_line(char last, char next) {
  return last == '\n' || (last == '\r' && next != '\n');
}

// Whether the file still begins with the lines that were read of it, and, if it was read to its
// end, still ends there.
bool has_text(const input_file& file, const input_total& total, bool to_its_end,
              std::uint64_t largest_part_bytes) {
  std::shared_ptr<const seekable_input> seekable;
  if (total.begin_bytes != 0) {
    seekable = seekable_input::open(file, largest_part_bytes);
    if (!seekable || seekable->text_bytes() < total.begin_bytes) return false;
  }
  const auto source = seekable ? seekable->open_at(total.begin_bytes) : open_input(file);
  std::vector<std::byte> chunk(chunk_bytes);
  std::uint32_t crc = 0;
  char last = '\n';
  std::uint64_t left = total.text_bytes;
  while (left > 0) {
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

[[noreturn]] void refuse_changed(const input_file& file) {
  throw config_error(
      fmt::format("--resume: {} is not what it was when the run read it; give the same file, or "
                  "--overwrite to start again",
                  display_path(file).string()));
}

}  // namespace

run_identity identity_of(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                         const run_options& options) {
  run_identity identity;
  const auto add = [&](std::string name, std::string value) {
    identity.emplace_back(std::move(name), std::move(value));
  };
  for (const text_key& key : options.keys) {
    add(key.path.size() > 1 ? "--text-key" : "--json-keys", key.name);
  }
  add("--split-sentences", options.sentences ? options.sentences->language : "off");
  if (options.sentences) add("--keep-newlines", options.sentences->keep_newlines ? "on" : "off");
  add("tokenizer fingerprint", tokenizer.fingerprint());
  add("dtype", std::string(name(encoding.dtype)));
  add("--append-eod", encoding.append_eod ? std::to_string(*encoding.append_eod) : "off");
  add("--on-bad-record", policy_of(options));
  add("checksums", options.checksums ? "on" : "off");
  add("provenance", options.provenance ? "on" : "off");
  if (options.partitions > 1) add("--partitions", std::to_string(options.partitions));
  if (options.task) {
    const auto place = [](const text_place& at) {
      return fmt::format("byte {} of input {}", at.offset_bytes, at.input);
    };
    add("--task", fmt::format("{}/{}", options.task->id.index, options.task->id.of));
    // Which follows from the sizes of all inputs.
    add("what the task reads",
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
    if (file.regular && ::stat(file.path.c_str(), &status) == 0) {
      stamp = {static_cast<std::uint64_t>(status.st_size),
               status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
    }
    stamps.push_back(stamp);
  }
  return stamps;
}

void expect_same_run(const journal& journal, const run_identity& identity,
                     std::span<const input_file> inputs, const task_share& share,
                     std::uint64_t largest_part_bytes) {
  if (const auto what = difference(*journal.identity(), identity)) {
    throw config_error(
        fmt::format("--resume: the run that was begun was told otherwise ({}); repeat "
                    "its flags, or --overwrite to start again",
                    *what));
  }
  if (!journal.state()) return;
  const run_state& state = *journal.state();
  const auto stamps = stamps_of(inputs);
  for (std::size_t i = 0; i < state.inputs.size(); ++i) {
    // What can be read only once is compared when it is read again, up to where the run was.
    if (!inputs[i].regular || stamps[i] == journal.stamps().at(i)) continue;
    if (!share.has_start_of(i) && state.inputs[i].text_bytes == 0) continue;  // another task's
    if (!has_text(inputs[i], state.inputs[i], i < state.next.input, largest_part_bytes)) {
      refuse_changed(inputs[i]);
    }
  }
}

void expect_same_text(const dataset_meta& meta, std::span<const input_file> inputs,
                      std::span<const std::size_t> changed, std::uint64_t largest_part_bytes) {
  for (const std::size_t i : changed) {
    for (const input_extent& extent : meta.inputs) {
      if (extent.path != display_path(inputs[i]).string()) continue;
      const input_total total{.begin_bytes = extent.begin,
                              .text_bytes = extent.text_bytes,
                              .lines = extent.lines,
                              .crc32c = extent.crc32c};
      if (!has_text(inputs[i], total, false, largest_part_bytes)) refuse_changed(inputs[i]);
    }
  }
}

}  // namespace millrace::preprocess
