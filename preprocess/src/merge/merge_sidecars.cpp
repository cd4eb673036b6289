// SPDX-License-Identifier: Apache-2.0
#include "merge/merge_sidecars.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "output/written_meta.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t groups_between = std::size_t{1} << 14;  // groups between two checks of `stop`
constexpr std::size_t bad_chunk_bytes = std::size_t{1} << 16;

// Throws an error that names the first part that is incompatible with the parts before it.
[[noreturn]] void refuse(std::span<const std::filesystem::path> prefixes,
                         std::span<const formats::dataset_meta> metas, const char* problem) {
  const auto fits = [&](std::size_t count) {
    try {
      (void)formats::concatenate(metas.first(count));
      return true;
    } catch (const config_error&) {
      return false;
    }
  };
  std::size_t good = 1;  // the first `good` parts are compatible
  for (std::size_t bad = metas.size(); bad - good > 1;) {
    const std::size_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  throw config_error(
      fmt::format("{}: {}; parts are counted from 1, sorted by name; parts without .meta files are "
                  "merged without this check",
                  dataset_paths(prefixes[good]).of(sidecar::meta).string(), problem));
}

// Throws if all records of a whole run are bad, whether or not the run was split into tasks. In a
// single task, all records may be bad.
void expect_good_records(const formats::dataset_meta& whole,
                         std::span<const formats::dataset_meta> parts) {
  if (whole.tasks || !parts.front().tasks || whole.counts.documents != 0) return;
  std::int64_t bad = 0;
  std::string kinds;
  for (const auto& [kind, count] : whole.counts.bad_records) {
    bad += count;
    if (count != 0) kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
  }
  if (bad == 0 || stop_of(whole) != nullptr) return;
  throw config_error(
      fmt::format("every record of all tasks is bad ({}), so there is nothing to merge; check the "
                  "keys and the inputs",
                  kinds));
}

std::vector<part_change> changes_of(const formats::dataset_meta& whole,
                                    std::span<const formats::dataset_meta> parts) {
  std::vector<part_change> changes;
  for (const formats::part_shift& shift : formats::part_shifts(parts)) {
    const bool named = shift.inputs_before < whole.inputs.size();
    changes.push_back({shift, named ? whole.inputs[shift.inputs_before].begin : 0});
  }
  return changes;
}

/// Finds out which sidecars the parts lack.
class part_review {
 public:
  /// @param metas  one meta per prefix, or empty
  part_review(std::span<const std::filesystem::path> prefixes,
              std::span<const formats::dataset_meta> metas)
      : prefixes_(prefixes), metas_(metas) {}

  bool any_has(sidecar which) const {
    return std::ranges::any_of(prefixes_, [&](const auto& prefix) { return has(prefix, which); });
  }

  /// Returns the reason why the whole cannot have this sidecar, or nothing if the whole can have
  /// it.
  std::optional<std::string> lack(sidecar which) const {
    const bool needs_meta = which == sidecar::src || which == sidecar::bad;
    if (needs_meta && metas_.empty()) {
      return "merging it needs the .meta of every part";
    }
    for (std::size_t i = 0; i < prefixes_.size(); ++i) {
      const dataset_paths paths(prefixes_[i]);
      if (which == sidecar::bad) {
        if (auto why = lack_of_bad(paths, metas_[i])) return why;
        continue;
      }
      const auto meta = metas_.empty() ? nullptr : &metas_[i];
      if (!has(prefixes_[i], which)) return there_is_no(paths.of(which));
      if (meta == nullptr || which == sidecar::meta) continue;
      const bool is_listed = which == sidecar::sum   ? meta->sum_version.has_value()
                             : which == sidecar::src ? meta->src_version.has_value()
                                                     : meta->mask.has_value();
      if (!is_listed) {
        return fmt::format("{} does not list {}", paths.of(sidecar::meta).string(),
                           paths.of(which).string());
      }
    }
    return std::nullopt;
  }

 private:
  static bool has(const std::filesystem::path& prefix, sidecar which) {
    return is_file(dataset_paths(prefix).of(which));
  }
  static std::string there_is_no(const std::filesystem::path& path) {
    return fmt::format("there is no {}", path.string());
  }
  // Returns the reason why a part lacks P.bad, or nothing. A part without bad records needs no
  // P.bad file.
  static std::optional<std::string> lack_of_bad(const dataset_paths& paths,
                                                const formats::dataset_meta& meta) {
    if (meta.on_bad_record != "quarantine") {
      return fmt::format("{} was written by a run without --on-bad-record quarantine",
                         paths.prefix.string());
    }
    const auto none = [](const auto& kind) { return kind.second == 0; };
    const auto bad = paths.of(sidecar::bad);
    if (is_file(bad) || std::ranges::all_of(meta.counts.bad_records, none)) return std::nullopt;
    return there_is_no(bad);
  }

  std::span<const std::filesystem::path> prefixes_;
  std::span<const formats::dataset_meta> metas_;
};

/// The version of the `.sum` of a merge: as little is proven of the whole as of any part.
std::uint32_t version_of_sums(std::span<const std::filesystem::path> prefixes) {
  std::uint32_t version = formats::sum_version;
  for (const auto& prefix : prefixes) {
    const auto path = dataset_paths(prefix).of(sidecar::sum);
    const io::file_mapping file(path);
    try {
      version =
          std::max(version, formats::parse_sum_header(file.bytes(), file.bytes().size()).version);
    } catch (const format_error& e) {
      throw e.in(path);
    }
  }
  return version;
}

}  // namespace

formats::dataset_meta concatenated(std::span<const std::filesystem::path> prefixes,
                                   std::span<const formats::dataset_meta> metas) {
  try {
    return formats::concatenate(metas);
  } catch (const config_error& e) {
    refuse(prefixes, metas, e.what());
  }
}

merged_sidecars plan_sidecars(std::span<const std::filesystem::path> prefixes) {
  const bool have_metas = !part_review(prefixes, {}).lack(sidecar::meta);
  return plan_sidecars(prefixes,
                       have_metas ? read_metas(prefixes) : std::vector<formats::dataset_meta>());
}

merged_sidecars plan_sidecars(std::span<const std::filesystem::path> prefixes,
                              std::vector<formats::dataset_meta> metas) {
  merged_sidecars plan;
  if (!metas.empty()) {
    plan.parts = std::move(metas);
    plan.meta = concatenated(prefixes, plan.parts);
    expect_good_records(*plan.meta, plan.parts);
    plan.changes = changes_of(*plan.meta, plan.parts);
  }
  const part_review review(prefixes, plan.parts);
  const auto is_kept = [&](sidecar which) {
    auto why = review.lack(which);
    if (!why) return true;
    if (review.any_has(which)) plan.dropped.push_back({which, *std::move(why)});
    return false;
  };
  (void)is_kept(sidecar::meta);
  if (is_kept(sidecar::sum)) plan.sum = version_of_sums(prefixes);
  plan.src = is_kept(sidecar::src);
  plan.bad = is_kept(sidecar::bad);
  // Without its mask, a model would learn from all tokens, so a mask is never dropped.
  if (const auto why = review.lack(sidecar::mask); !why) {
    plan.mask = true;
  } else if (review.any_has(sidecar::mask)) {
    throw config_error(*why +
                       ", but a part has a mask of the tokens to be predicted; merge only "
                       "datasets with masks, or only datasets without");
  }
  if (review.any_has(sidecar::duplicates)) {
    plan.dropped.push_back(
        {sidecar::duplicates,
         "it numbers the documents of one dataset, so it stays with the inputs"});
  }
  if (plan.meta) plan.meta->sum_version = plan.sum;
  if (plan.meta && !plan.src) plan.meta->src_version.reset();
  return plan;
}

std::uint64_t bytes_of_all(std::span<const std::filesystem::path> parts, sidecar which) {
  std::uint64_t total = 0;
  for (const auto& part : parts) {
    const auto status = io::status_if_there(dataset_paths(part).of(which));
    if (status) total += static_cast<std::uint64_t>(status->st_size);  // a part may have no P.bad
  }
  return total;
}

part_mask::part_mask(const std::filesystem::path& path, std::uint64_t tokens) : file_(path) {
  try {
    const formats::mask_view mask = formats::parse_mask(file_.bytes());
    if (mask.token_count() != tokens) {
      throw format_error(16, fmt::format("it has bits for {} tokens, but the .bin has {}; it "
                                         "belongs to another dataset",
                                         mask.token_count(), tokens));
    }
    formats::verify_mask(mask);
    bits_ = mask.bits;
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

void expect_meta_of(const merge_input& input, const formats::dataset_meta& meta) {
  const formats::mmidx_view& idx = input.view();
  const auto expect = [&](const char* what, std::uint64_t said, std::uint64_t found) {
    if (said == found) return;
    throw format_error(
        input.paths().of(sidecar::meta), 0,
        fmt::format("it says {} {}, but the .idx has {}; the two belong to different datasets",
                    said, what, found));
  };
  expect("sequences", static_cast<std::uint64_t>(meta.counts.sequences), idx.lengths.size());
  expect("documents", static_cast<std::uint64_t>(meta.counts.documents),
         idx.document_index.size() - 1);
  expect("token bytes", meta.bin_bytes, idx.bin_size_bytes);
}

void expect_src_of(const formats::src_view& src, const formats::dataset_meta& meta) {
  const auto documents = static_cast<std::uint64_t>(meta.counts.documents);
  if (src.document_count() == documents && src.input_count() == meta.inputs.size()) return;
  throw format_error(
      16, fmt::format("it describes {} documents and {} inputs, but there are {} and {}; it "
                      "belongs to another dataset",
                      src.document_count(), src.input_count(), documents, meta.inputs.size()));
}

void append_places(const dataset_paths& part, const formats::dataset_meta& meta,
                   const formats::part_shift& shift, provenance_writer& writer,
                   std::vector<formats::src_input>& inputs, const stop_flag& stop) {
  stop.check();
  const auto path = part.of(sidecar::src);
  const io::file_mapping file(path);
  try {
    const formats::src_view view = formats::parse_src(file.bytes());
    expect_src_of(view, meta);
    inputs.resize(shift.inputs_before);  // if this part continues the last input, drop that here
    std::ranges::move(view.inputs(), std::back_inserter(inputs));
    formats::src_cursor cursor(view);
    std::array<formats::source_place, formats::src_group_documents> moved;
    std::size_t groups = 0;
    for (auto places = cursor.next(); !places.empty(); places = cursor.next()) {
      std::ranges::transform(places, moved.begin(),
                             [&](const auto& place) { return shift.apply(place); });
      writer.append(std::span(moved).first(places.size()));
      if (++groups % groups_between != 0) continue;
      file.let_go();
      stop.check();
    }
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

namespace {

constexpr std::string_view file_key = "{\"file\": \"";
constexpr std::string_view line_key = ", \"line\": ";
constexpr std::string_view from_key = ", \"from_byte\": ";

// Returns the end of the string whose contents begin at `at`: the position after its closing quote.
std::size_t end_of_string(std::string_view json, std::size_t at) {
  for (; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return at + 1;
}

/// If `text` begins with `key` and a number, removes both and returns the number.
template <class T>
std::optional<T> take(std::string_view& text, std::string_view key) {
  if (!text.starts_with(key)) return std::nullopt;
  T value = 0;
  const char* const first = text.data() + key.size();
  const auto [end, problem] = std::from_chars(first, text.data() + text.size(), value);
  if (problem != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The first entries of a line of P.bad.
struct bad_line {
  std::string_view file;  ///< the entry `file`, with the brace before it
  std::int64_t line = 0;
  std::optional<std::uint64_t> from_byte;
  std::string_view rest;  ///< all that follows
};

std::optional<bad_line> parse_bad_line(std::string_view line) {
  if (!line.starts_with(file_key)) return std::nullopt;
  const std::size_t behind = end_of_string(line, file_key.size());
  if (behind > line.size()) return std::nullopt;
  bad_line parsed;
  parsed.file = line.substr(0, behind);
  parsed.rest = line.substr(behind);
  const auto number = take<std::int64_t>(parsed.rest, line_key);
  if (!number) return std::nullopt;
  parsed.line = *number;
  parsed.from_byte = take<std::uint64_t>(parsed.rest, from_key);
  return parsed;
}

std::int64_t bad_records_of(const formats::dataset_meta& meta) {
  std::int64_t all = 0;
  for (const auto& [kind, count] : meta.counts.bad_records) all += count;
  return all;
}

// Throws if a line of P.bad, which is at byte `at`, is not as formats/spec/bad.md says.
void expect_bad_line(std::string_view line, const formats::dataset_meta& meta, std::uint64_t at) {
  const auto parsed = parse_bad_line(line);
  if (!parsed || parsed->line < 1 || !line.ends_with("}\n")) {
    throw format_error(at, "expected {\"file\": TEXT, \"line\": 1 or more, ...}, found " +
                               formats::in_quotes(line.substr(0, line.size() - 1)));
  }
  if (!parsed->from_byte) return;
  const std::uint64_t begin = meta.inputs.empty() ? 0 : meta.inputs.front().begin;
  if (*parsed->from_byte == begin) return;
  const std::size_t place = line.size() - parsed->rest.size();  // after the number
  throw format_error(at + line.rfind(from_key, place) + 2,
                     fmt::format("\"from_byte\" is {}, expected {}, where the first input of the "
                                 ".meta begins",
                                 *parsed->from_byte, begin));
}

}  // namespace

void append_bad_lines(const dataset_paths& part, const formats::dataset_meta& meta,
                      const part_change& change, io::atomic_file& file, const stop_flag& stop,
                      bool is_cut) {
  const auto append = [&](std::string_view lines) { file.append(std::as_bytes(std::span(lines))); };
  const auto path = part.of(sidecar::bad);
  if (!is_file(path)) return;
  const io::unique_fd fd = io::open_read_only(path);
  const std::int64_t expected = bad_records_of(meta);
  std::int64_t lines = 0;
  std::string text;         // what was read and not yet appended
  std::uint64_t begin = 0;  // where `text` begins in the file
  const auto fail = [&](std::uint64_t at, const std::string& problem) {
    throw format_error(path, at, problem);
  };
  for (bool at_end = false; !at_end;) {
    stop.check();
    const std::size_t kept = text.size();
    text.resize(kept + bad_chunk_bytes);
    const std::size_t n = io::pread_some(fd, std::as_writable_bytes(std::span(text).subspan(kept)),
                                         begin + kept, path);
    text.resize(kept + n);
    at_end = n < bad_chunk_bytes;
    std::size_t done = 0;
    // The first `kept` bytes come from the previous chunk and have no line end. Do not search them
    // again, because a line can be long.
    for (std::size_t end = text.find('\n', kept); end != text.npos; end = text.find('\n', done)) {
      const std::string_view line = std::string_view(text).substr(done, end + 1 - done);
      if (lines == expected && is_cut) return;
      if (lines == expected) {
        fail(begin + done,
             fmt::format("expected the {} bad records of the .meta, found another", expected));
      }
      try {
        expect_bad_line(line, meta, begin + done);
      } catch (const format_error& e) {
        throw e.in(path);
      }
      const auto moved = shifted_bad_line(line, change.shift.lines_before, change.begin);
      append(moved ? *moved : line);
      ++lines;
      done = end + 1;
    }
    text.erase(0, done);
    begin += done;
  }
  if (!text.empty()) {
    fail(begin + text.size(),
         fmt::format("expected a line end, found the end of the file, {} bytes "
                     "after the last line end",
                     text.size()));
  }
  if (lines != expected) {
    fail(begin, fmt::format("expected the {} bad records of the .meta, found {}", expected, lines));
  }
}

std::optional<std::string> shifted_bad_line(std::string_view line, std::int64_t lines_before,
                                            std::uint64_t whole_begin) {
  const auto parsed = parse_bad_line(line);
  if (!parsed || !parsed->from_byte) return std::nullopt;
  std::string moved(parsed->file);
  moved += fmt::format("{}{}", line_key, parsed->line + lines_before);
  if (whole_begin != 0) moved += fmt::format("{}{}", from_key, whole_begin);
  moved += parsed->rest;
  return moved;
}

}  // namespace millrace::preprocess
