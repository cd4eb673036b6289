// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/json.hpp>
#include <millrace/formats/detail/json_writer.hpp>

#include "bench/gpu/bundle_steps.hpp"
#include "bench/gpu/run_program.hpp"

namespace millrace::bench {

enum class step_verdict : unsigned char { passed, failed, cut_off, skipped, no_time };

inline const char* text_of(step_verdict verdict) noexcept {
  constexpr const char* texts[] = {"passed", "FAILED", "CUT OFF", "skipped", "no time left"};
  return texts[static_cast<std::size_t>(verdict)];
}

struct step_result {
  bundle_step step;
  program_end end = {};
  step_verdict verdict = step_verdict::passed;
};

/// Returns one line of text about a step, for the terminal.
inline std::string line_of(const step_result& result) {
  std::ostringstream line;
  line << std::left << std::setw(12) << text_of(result.verdict) << std::right << std::fixed
       << std::setprecision(1) << std::setw(7) << result.end.seconds << " s  " << result.step.name;
  return line.str();
}

/// The results of `run_all` so far, as JSON and as Markdown.
class bundle_report {
 public:
  /// @param device    description of the device
  /// @param manifest  path of a text file that says from which sources the programs were built; the
  ///                  file may be missing
  bundle_report(std::string device, const std::string& manifest) : device_(std::move(device)) {
    std::ifstream in(manifest);
    std::ostringstream text;
    text << in.rdbuf();
    manifest_ = in.is_open() ? text.str() : "not a bundle: there is no file MANIFEST\n";
  }

  void add(step_result result) { results_.push_back(std::move(result)); }
  const std::vector<step_result>& results() const noexcept { return results_; }

  /// Writes results.json and results.md in `folder`, replacing earlier versions.
  void write(const std::filesystem::path& folder) const {
    replace(folder / "results.json", json());
    replace(folder / "results.md", markdown());
  }

  /// Returns a table of all figures.
  std::string markdown_of_figures() const {
    std::string table =
        "| figure | median | spread | unit | must | aim | verdict |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (const step_result& result : results_) {
      for (const auto& line : lines_of(result)) table += row_of(line);
    }
    return table;
  }

 private:
  // Returns the JSON values that a step printed, one per line.
  static std::vector<formats::json_value> lines_of(const step_result& result) {
    std::vector<formats::json_value> found;
    std::istringstream lines(result.end.output);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] != '{') continue;
      try {
        found.push_back(formats::parse_json(line));
      } catch (const error&) {  // an incomplete line: skip it
      }
    }
    return found;
  }

  static std::string number(const formats::json_value& of, std::string_view name) {
    const formats::json_value* found = of.find(name);
    double scratch = 0;
    const double* value = found != nullptr ? found->as_double(scratch) : nullptr;
    if (value == nullptr) return "";
    std::ostringstream text;
    text << std::setprecision(5) << *value;
    return text.str();
  }

  static std::string word(const formats::json_value& of, std::string_view name) {
    const formats::json_value* found = of.find(name);
    const auto* value = found != nullptr ? found->as<std::string>() : nullptr;
    return value != nullptr ? *value : "";
  }

  static std::string row_of(const formats::json_value& line) {
    if (line.find("figure") == nullptr) return "";
    return "| " + word(line, "figure") + " | " + number(line, "median") + " | " +
           number(line, "low") + " to " + number(line, "high") + " | " + word(line, "unit") +
           " | " + number(line, "must") + " | " + number(line, "aim") + " | " +
           word(line, "verdict") + " |\n";
  }

  std::string json() const {
    formats::json_writer json;
    json.open('{')
        .key("device")
        .value(device_)
        .key("manifest")
        .value(manifest_)
        .key("steps")
        .open('[');
    for (const step_result& result : results_) {
      json.open('{').key("step").value(result.step.name);
      json.key("verdict").value(text_of(result.verdict)).key("status").value(result.end.status);
      json.key("seconds").value(result.end.seconds).key("command").open('[');
      for (const std::string& word : result.step.command) json.value(word);
      json.close(']').key("settings").open('[');
      for (const std::string& word : result.step.settings) json.value(word);
      json.close(']').key("output").value(result.end.output).close('}');
    }
    json.close(']').close('}');
    return json.text() + "\n";
  }

  std::string markdown() const {
    std::string text = "# millrace on a GPU\n\n" + device_ + "\n\n```\n" + manifest_ +
                       "```\n\n## Figures\n\n" + markdown_of_figures() +
                       "\n## Steps\n\n| step | verdict | seconds |\n| --- | --- | --- |\n";
    for (const step_result& result : results_) {
      std::ostringstream seconds;
      seconds << std::fixed << std::setprecision(1) << result.end.seconds;
      text += "| " + result.step.name + " | " + text_of(result.verdict) + " | " + seconds.str() +
              " |\n";
    }
    text += markdown_of_tests();
    for (const step_result& result : results_) {
      if (shows_output(result)) {
        text += "\n## Output of " + result.step.name + "\n\n```\n" + tail_of(result.end.output) +
                "```\n";
      }
    }
    return text;
  }

  std::string markdown_of_tests() const {
    std::string table = "\n## Tests\n\n| test | verdict | seconds |\n| --- | --- | --- |\n";
    for (const step_result& result : results_) {
      for (const auto& line : lines_of(result)) {
        if (line.find("test") == nullptr) continue;
        table += "| " + word(line, "test") + " | " + word(line, "verdict") + " | " +
                 number(line, "seconds") + " |\n";
      }
    }
    return table;
  }

  static bool shows_output(const step_result& result) {
    if (result.verdict == step_verdict::failed || result.verdict == step_verdict::cut_off)
      return true;
    return result.verdict == step_verdict::passed && result.end.output.find("{\"") != 0 &&
           !result.end.output.empty();
  }

  static std::string tail_of(const std::string& output) {
    constexpr std::size_t most = 6000;
    std::string tail =
        output.size() > most ? "...\n" + output.substr(output.size() - most) : output;
    if (!tail.empty() && tail.back() != '\n') tail += '\n';
    return tail;
  }

  static void replace(const std::filesystem::path& path, const std::string& text) {
    const std::filesystem::path part = path.string() + ".part";
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (!out)
      throw error(part.string() + ": cannot be written: check the folder and the space left");
    std::filesystem::rename(part, path);
  }

  std::string device_;
  std::string manifest_;
  std::vector<step_result> results_;
};

}  // namespace millrace::bench
