// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include <millrace/command/grouped.hpp>
#include <millrace/command/text.hpp>
#include <millrace/formats/detail/json_writer.hpp>

#include "report/dry_run.hpp"
#include "report/progress.hpp"

namespace millrace::preprocess {
namespace {

using command::counted;

std::string size(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes * 1e-3);
  if (bytes < 1e9) return fmt::format("{:.1f} MB", bytes * 1e-6);
  return fmt::format("{:.2f} GB", bytes * 1e-9);
}

std::string duration(double seconds) {
  return seconds < 9.95 ? fmt::format("{:.1f} s", seconds) : short_duration(seconds);
}

std::string amount(const estimate& of) {
  std::string text = command::grouped(std::llround(of.value));
  if (of.error > 0) {
    text += fmt::format(" +- {} ({:.1f} %)", command::grouped(std::llround(of.error)),
                        100 * of.error / of.value);
  }
  return text;
}

std::string input(const dry_run_report& r) {
  const std::string decompressed = r.input_bytes.value > static_cast<double>(r.read_bytes) * 1.001
                                       ? fmt::format(", {} decompressed", size(r.input_bytes.value))
                                       : "";
  return fmt::format("{} in {}{}", size(static_cast<double>(r.read_bytes)),
                     counted(static_cast<std::int64_t>(r.input_files), "file"), decompressed);
}

std::string sample(const dry_run_report& r) {
  if (r.exact)
    return fmt::format("all of the input, so counts are exact; {:.1f} s", r.sampling_seconds);
  return fmt::format("{} in {}; {:.1f} s", size(r.sampled_bytes),
                     counted(static_cast<std::int64_t>(r.sampled_places), "place"),
                     r.sampling_seconds);
}

std::string output(const dry_run_report& r) {
  std::string text =
      fmt::format("{}: {} .bin, {} .idx", size(r.bin_bytes + r.idx_bytes + r.sidecar_bytes),
                  size(r.bin_bytes), size(r.idx_bytes));
  if (r.sidecar_bytes > 0) text += fmt::format(", {} sidecars", size(r.sidecar_bytes));
  return text;
}

void add_estimate(formats::json_writer& json, std::string_view name, const estimate& of) {
  json.key(name).value(of.value).key(std::string(name) + "_error").value(of.error);
}

}  // namespace

std::string describe(const dry_run_report& r) {
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "{:<10} {}\n", name, value);
  };
  row("tokenizer", text_of(r.tokenizer));
  row("input", input(r));
  row("sampled", sample(r));
  row("documents", amount(r.documents));
  row("tokens", amount(r.tokens));
  row("output", output(r));
  row("time", fmt::format("{} with {} at {:.1f} MB/s each, if the disks keep up",
                          duration(r.seconds), counted(r.workers, "worker"), r.encode_rate * 1e-6));
  row("memory", fmt::format("at most {}, plus the longest line", size(r.memory_bytes)));
  if (const auto bad = r.sampled.bad_record_total(); bad > 0) {
    row("bad", fmt::format("{} in the sample; a run stops at the first one unless --on-bad-record "
                           "is skip or quarantine",
                           counted(bad, "record")));
  }
  for (const std::string& note : r.notes) text += note + '\n';
  return text;
}

std::string to_json(const dry_run_report& r) {
  formats::json_writer json;
  json.open('{').key("tokenizer_type").value(r.tokenizer.type).key("tokenizer_files").open('[');
  for (const std::string& file : r.tokenizer.files) json.value(file);
  json.close(']').key("exact").value(r.exact);
  json.key("sampled_bytes").value(r.sampled_bytes);
  json.key("sampled_places").value(r.sampled_places);
  json.key("sampled_documents").value(r.sampled.documents);
  json.key("sampled_bad_records").value(r.sampled.bad_record_total());
  json.key("sampling_seconds").value(r.sampling_seconds);
  json.key("input_files").value(r.input_files).key("read_bytes").value(r.read_bytes);
  add_estimate(json, "input_bytes", r.input_bytes);
  add_estimate(json, "documents", r.documents);
  add_estimate(json, "tokens", r.tokens);
  add_estimate(json, "sequences", r.sequences);
  json.key("bin_bytes").value(r.bin_bytes).key("idx_bytes").value(r.idx_bytes);
  json.key("sidecar_bytes").value(r.sidecar_bytes).key("workers").value(r.workers);
  json.key("seconds").value(r.seconds).key("encode_bytes_per_second").value(r.encode_rate);
  json.key("memory_bytes").value(r.memory_bytes).key("notes").open('[');
  for (const std::string& note : r.notes) json.value(note);
  json.close(']').close('}');
  return json.text() + "\n";
}

}  // namespace millrace::preprocess
