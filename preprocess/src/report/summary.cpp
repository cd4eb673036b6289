// SPDX-License-Identifier: Apache-2.0
#include "report/summary.hpp"

#include <sys/resource.h>

#include <cmath>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include <millrace/command/grouped.hpp>
#include <millrace/command/shell_word.hpp>
#include <millrace/command/text.hpp>
#include <millrace/formats/detail/json_writer.hpp>

#include "record/record_parser.hpp"

namespace millrace::preprocess {
namespace {

using command::grouped;

double per_second(double amount, double seconds) {
  return seconds > 0 ? amount / seconds : 0;
}

// Reads `VmHWM`, because `ru_maxrss` of getrusage(2) would include the memory of the program that
// started this one with exec.
std::uint64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

// Lists the files of an output: "out.bin (6 bytes), .idx, .meta and .bad". The common prefix is
// printed once.
std::string listed_files(const output_summary& output) {
  std::string text = fmt::format("{}.bin ({} bytes)", output.prefix,
                                 grouped(static_cast<std::int64_t>(output.bin_bytes)));
  std::vector<std::string_view> others;
  for (const std::string& file : output.files) {
    const std::string_view suffix = std::string_view(file).substr(output.prefix.size());
    if (suffix != ".bin") others.push_back(suffix);
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    text += fmt::format("{}{}", i + 1 == others.size() ? " and " : ", ", others[i]);
  }
  return text;
}

}  // namespace

std::string data_path_line(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return "no tokens: the output has nothing to train on\n";
  std::string line = "--data-path";
  for (const std::string& argument : arguments) line += ' ' + command::shell_word(argument);
  return line + '\n';
}

std::string budget_line(std::string_view place) {
  return fmt::format("--max-tokens was reached: the rest, from {}, was left out\n",
                     command::one_line(place));
}

std::string wrote_line(const output_summary& output) {
  return fmt::format("wrote {}\n", command::one_line(listed_files(output)));
}

std::vector<std::string> data_path(const run_summary& summary) {
  std::vector<std::string> arguments;
  for (const output_summary& output : summary.outputs) {
    if (output.tokens == 0) continue;
    arguments.push_back(std::to_string(output.tokens));
    arguments.push_back(output.prefix);
  }
  // A single output is passed without a weight. With a weight, Megatron would make a blend of one
  // dataset.
  if (arguments.size() == 2) arguments.erase(arguments.begin());
  return arguments;
}

std::int64_t run_summary::tokens() const noexcept {
  std::int64_t sum = 0;
  for (const output_summary& output : outputs) sum += output.tokens;
  return sum;
}

std::int64_t run_summary::empty_documents() const noexcept {
  std::int64_t sum = 0;
  for (const output_summary& output : outputs) sum += output.empty_documents;
  return sum;
}

progress_state progress_of(const run_summary& summary) {
  progress_state state{.documents = summary.counts.documents,
                       .input_bytes = summary.input_bytes,
                       .read_bytes = summary.read_bytes,
                       .tokens = summary.tokens(),
                       .bad_records = summary.counts.bad_record_total(),
                       .busy = summary.busy};
  for (const output_summary& output : summary.outputs) state.output_bytes += output.bin_bytes;
  return state;
}

void measure_process(run_summary& summary) {
  summary.peak_rss_bytes = peak_resident_bytes();
  struct ::rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return;
  const auto seconds = [](const ::timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  summary.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string describe(const run_summary& s) {
  const double megabytes = static_cast<double>(s.input_bytes) * 1e-6;
  const auto rate = [&](double amount) { return per_second(amount, s.seconds); };
  std::string text = fmt::format(
      "{}, {} ({}) from {:.1f} MB in {}\n"
      "{:.2f} s with {}: {:.1f} MB/s, {} docs/s, {} tokens/s; "
      "{:.2f} CPU seconds, peak memory {:.0f} MB\n",
      grouped(s.counts.documents, "document"), grouped(s.tokens(), "token"), s.dtype, megabytes,
      grouped(static_cast<std::int64_t>(s.input_files), "file"), s.seconds,
      grouped(s.workers, "worker"), rate(megabytes),
      grouped(std::llround(rate(static_cast<double>(s.counts.documents)))),
      grouped(std::llround(rate(static_cast<double>(s.tokens())))), s.cpu_seconds,
      static_cast<double>(s.peak_rss_bytes) * 1e-6);
  text += fmt::format("tokenizer: {}\n", text_of(s.tokenizer));
  if (const auto slowest = slowest_stage(s.busy, s.seconds, s.workers, s.processes);
      !slowest.name.empty()) {
    text += fmt::format("slowest stage: {}, busy {:.0f} % of the time\n", slowest.name,
                        slowest.busy_part * 100);
  }
  const auto add = [&](std::int64_t count, std::string_view noun, std::string_view rest) {
    if (count != 0) text += fmt::format("{}{}\n", grouped(count, noun), rest);
  };
  if (s.stopped_before) text += budget_line(*s.stopped_before);
  add(s.counts.blank_lines, "blank line", " skipped");
  add(s.counts.not_sampled, "record", " left out by --sample-rate");
  add(s.duplicates, "duplicate", " dropped");
  add(s.empty_documents(), "empty document", "");
  add(s.counts.lone_surrogates, "lone surrogate", " replaced by U+FFFD");
  add(s.counts.special_tokens, "special token", " in texts encoded as ids");
  add(s.counts.overlong, "conversation", " with too many tokens dropped");
  add(s.counts.truncated, "conversation", " cut to --max-length");
  for (std::size_t kind = 0; kind < fault_kinds; ++kind) {
    add(s.counts.bad_records[kind], "bad record", fmt::format(" dropped: {}", fault_names[kind]));
  }
  for (const output_summary& output : s.outputs) {
    if (output.trained) {
      text += fmt::format(
          "{} ({:.1f} % of all) to be predicted\n", grouped(*output.trained, "token"),
          output.tokens == 0
              ? 0.0
              : 100.0 * static_cast<double>(*output.trained) / static_cast<double>(output.tokens));
    }
    text += wrote_line(output);
  }
  return text + data_path_line(data_path(s));
}

std::string to_json(const run_summary& s) {
  formats::json_writer json;
  json.open('{');
  json.key("documents").value(s.counts.documents).key("tokens").value(s.tokens());
  json.key("dtype").value(s.dtype).key("tokenizer_type").value(s.tokenizer.type);
  json.key("tokenizer_files").open('[');
  for (const std::string& file : s.tokenizer.files) json.value(file);
  json.close(']').key("outputs").open('[');
  for (const output_summary& output : s.outputs) {
    json.open('{').key("prefix").value(output.prefix);
    json.key("sequences").value(output.sequences).key("documents").value(output.documents);
    json.key("empty_documents").value(output.empty_documents).key("tokens").value(output.tokens);
    if (output.trained) json.key("trained_tokens").value(*output.trained);
    json.key("bin_bytes").value(output.bin_bytes);
    json.key("files").open('[');
    for (const std::string& file : output.files) json.value(file);
    json.close(']').close('}');
  }
  json.close(']').key("lines").value(s.counts.lines);
  json.key("blank_lines").value(s.counts.blank_lines);
  json.key("not_sampled").value(s.counts.not_sampled);
  json.key("duplicates").value(s.duplicates);
  json.key("empty_documents").value(s.empty_documents());
  json.key("lone_surrogates").value(s.counts.lone_surrogates);
  json.key("special_tokens").value(s.counts.special_tokens);
  const bool has_conversations = !s.outputs.empty() && s.outputs.front().trained;
  if (has_conversations) {
    json.key("overlong").value(s.counts.overlong).key("truncated").value(s.counts.truncated);
  }
  if (s.stopped_before) json.key("stopped_before").value(*s.stopped_before);
  json.key("bad_records").open('{');
  const std::size_t kinds = has_conversations ? fault_kinds : text_fault_kinds;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    json.key(fault_names[kind]).value(s.counts.bad_records[kind]);
  }
  json.close('}').key("input_files").value(s.input_files);
  json.key("input_bytes").value(s.input_bytes).key("read_bytes").value(s.read_bytes);
  json.key("text_bytes").value(s.counts.text_bytes).key("workers").value(s.workers);
  json.key("seconds").value(s.seconds).key("cpu_seconds").value(s.cpu_seconds);
  json.key("peak_rss_bytes").value(s.peak_rss_bytes).key("busy_seconds").open('{');
  json.key("read").value(s.busy.read).key("read_spans").value(s.busy.read_spans);
  json.key("encode").value(s.busy.encode);
  json.key("write").value(s.busy.write).key("sync").value(s.busy.sync).close('}');
  json.key("slowest_stage");
  const auto slowest = slowest_stage(s.busy, s.seconds, s.workers, s.processes);
  if (slowest.name.empty()) {
    json.null();
  } else {
    json.value(slowest.name);
  }
  json.key("data_path").open('[');
  for (const std::string& argument : data_path(s)) json.value(argument);
  json.close(']').close('}');
  return json.text() + "\n";
}

}  // namespace millrace::preprocess
