// SPDX-License-Identifier: Apache-2.0
#include "merge/token_budget.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/src.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "merge/merge_input.hpp"
#include "merge/merge_sidecars.hpp"
#include "merge/part_readers.hpp"
#include "output/cut_points.hpp"
#include "output/dataset_paths.hpp"
#include "output/dataset_writer.hpp"
#include "output/disk_room.hpp"
#include "output/written_meta.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t index_entries = std::size_t{64} << 10;

/// What stays of a part.
struct part_end {
  cut_point point;         ///< `documents` of its counts is the number of documents that stay
  bool after_all = false;  ///< the whole part stays; `point` is then its last one
};

/// Finds where one process would have ended.
class budget_search {
 public:
  budget_search(std::span<const std::filesystem::path> parts,
                std::span<const formats::dataset_meta> metas, std::int64_t budget,
                const std::function<bool(std::uint64_t)>& is_dropped, const stop_flag& stop)
      : parts_(parts), metas_(metas), budget_(budget), is_dropped_(is_dropped), stop_(stop) {}

  /// @return the place of the first record that is left out, as in P.meta; nothing if there is none
  std::optional<std::string> find() {
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      stop_.check();
      const formats::dataset_meta& meta = metas_[part];
      const std::optional<cut_point> cut = read(part);
      if (cut) {
        ends_.push_back({.point = *cut});
        const formats::input_extent& input = meta.inputs[cut->input];
        return stop_text(input.has_rows, cut->begin, input.path);
      }
      if (const std::string* stop = stop_of(meta)) return *stop;
      for (std::size_t key = 0; key < before_.size(); ++key) {
        before_[key] += ends_.back().point.tokens[key] - dropped_[key];
      }
      documents_before_ += static_cast<std::uint64_t>(meta.counts.documents);
    }
    return std::nullopt;
  }

  /// The ends of the parts up to the one in which the run ends.
  const std::vector<part_end>& ends() const noexcept { return ends_; }
  /// The key of these datasets.
  std::size_t key() const noexcept { return key_; }

 private:
  bool fits(const cut_point& point) const {
    for (std::size_t key = 0; key < before_.size(); ++key) {
      if (point.tokens[key] - dropped_[key] > budget_ - before_[key]) return false;
    }
    return true;
  }

  // Reads and checks the points of a part. If all documents fit, appends the end of the part to
  // `ends_`. Otherwise returns the last point that fits: it is before the first document that does
  // not.
  std::optional<cut_point> read(std::size_t part) {
    const formats::dataset_meta& meta = metas_[part];
    const auto path = dataset_paths(parts_[part]).of(sidecar::cuts);
    const cut_reader cuts(path);
    expect_key(cuts, path, part);
    std::vector<std::int64_t> lines_before;  // of each input
    std::int64_t lines = 0;
    for (const formats::input_extent& input : meta.inputs) {
      lines_before.push_back(std::exchange(lines, lines + input.lines));
    }
    bool is_of_meta = true;
    std::optional<cut_point> last;
    std::optional<cut_point> cut;
    dropped_.assign(before_.size(), 0);
    cuts.for_each([&](const cut_point& point) {
      const std::int64_t number = point.counts.documents;
      if (number == 0) {
        is_of_meta = std::ranges::all_of(point.tokens, [](std::int64_t n) { return n == 0; });
      }
      if (number != cuts.documents()) {
        is_of_meta = is_of_meta && is_within(point, meta.inputs, lines_before);
      }
      if (last && !cut) count_dropped(*last, point);
      if (!cut && !fits(point)) cut = last;
      last = point;
    });
    is_of_meta = is_of_meta && last->counts == record_counts_of(meta.counts) &&
                 last->tokens[key_] == meta.counts.tokens &&
                 (last->input_bytes == 0 || is_end_of(*last, meta.inputs));
    if (!is_of_meta) {
      throw format_error(path, 0,
                         "its counts are not those of the .meta beside it; the two belong to "
                         "different datasets");
    }
    if (!cut) ends_.push_back({.point = *std::move(last), .after_all = true});
    return cut;
  }

  // Counts the tokens of the document between two points, if it is dropped.
  void count_dropped(const cut_point& from, const cut_point& to) {
    const auto number = static_cast<std::uint64_t>(from.counts.documents);
    if (!is_dropped_ || !is_dropped_(documents_before_ + number)) return;
    for (std::size_t key = 0; key < dropped_.size(); ++key) {
      dropped_[key] += to.tokens[key] - from.tokens[key];
    }
  }

  // All parts must have the same keys, and be datasets of the same one.
  void expect_key(const cut_reader& cuts, const std::filesystem::path& path, std::size_t part) {
    if (part == 0) {
      before_.resize(cuts.keys());
      key_ = cuts.key();
    }
    if (cuts.keys() == before_.size() && cuts.key() == key_) return;
    throw format_error(
        path, 12,
        fmt::format("it has key {} of {}, but that of the first part has key {} of {}", cuts.key(),
                    cuts.keys(), key_, before_.size()));
  }

  static bool is_within(const cut_point& point, const std::vector<formats::input_extent>& inputs,
                        const std::vector<std::int64_t>& lines_before) {
    if (point.input >= inputs.size()) return false;
    const formats::input_extent& input = inputs[point.input];
    return point.input_bytes <= input.text_bytes &&
           std::cmp_less_equal(point.input_lines, input.lines) &&
           std::cmp_equal(point.input_lines, point.counts.lines - lines_before[point.input]);
  }

  static bool is_end_of(const cut_point& point, const std::vector<formats::input_extent>& inputs) {
    if (point.input >= inputs.size()) return false;
    const formats::input_extent& input = inputs[point.input];
    return point.begin == input.end() && point.input_bytes == input.text_bytes &&
           std::cmp_equal(point.input_lines, input.lines) && point.input_crc32c == input.crc32c;
  }

  std::span<const std::filesystem::path> parts_;
  std::span<const formats::dataset_meta> metas_;
  std::int64_t budget_;
  const std::function<bool(std::uint64_t)>& is_dropped_;
  const stop_flag& stop_;
  std::vector<std::int64_t> before_;    // tokens of each key in the parts so far
  std::vector<std::int64_t> dropped_;   // and in the dropped documents of this part so far
  std::uint64_t documents_before_ = 0;  // in the parts so far
  std::vector<part_end> ends_;
  std::size_t key_ = 0;
};

/// Cuts the inputs of a part at the end of the run, as one process would list them: an input of
/// which it read nothing is listed only if it is the first of all, or if a later one was read.
void cut_inputs(formats::dataset_meta& meta, const part_end& end, bool may_be_none) {
  auto& inputs = meta.inputs;
  if (!end.after_all) {
    inputs.resize(end.point.input + 1);
    formats::input_extent& last = inputs.back();
    last.text_bytes = end.point.input_bytes;
    last.lines = static_cast<std::int64_t>(end.point.input_lines);
    last.crc32c = end.point.input_crc32c;
  }
  while (!inputs.empty() && inputs.back().text_bytes == 0 && (may_be_none || inputs.size() > 1)) {
    inputs.pop_back();
  }
}

/// Copies the first documents of a part to a new dataset.
class part_copy {
 public:
  /// @param meta  that of the new dataset: its inputs are cut already
  /// @param key   that of the dataset in `point`
  part_copy(const std::filesystem::path& from, formats::dataset_meta meta, const cut_point& point,
            std::size_t key, const std::filesystem::path& to, const stop_flag& stop)
      : input_(from),
        meta_(std::move(meta)),
        point_(point),
        stop_(stop),
        key_(key),
        writer_(to, {.type = input_.view().type,
                     .checksums = meta_.sum_version.has_value(),
                     .sum_version = static_cast<std::uint32_t>(
                         meta_.sum_version.value_or(formats::sum_version)),
                     .provenance = meta_.src_version.has_value(),
                     .quarantine = is_file(input_.paths().of(sidecar::bad)),
                     .mask = meta_.mask.has_value()}) {}

  void write() {
    measure();
    reserve();
    copy_index();
    copy_tokens();
    copy_places();
    copy_bad_lines();
    if (meta_.mask) copy_mask();
    finish();
  }

 private:
  template <class T, class Take>
  void read_array(std::uint64_t array, std::uint64_t first, std::uint64_t count, Take&& take) {
    std::vector<T> chunk(std::min<std::uint64_t>(index_entries, count));
    for (std::uint64_t done = 0; done < count; done += chunk.size()) {
      stop_.check();
      chunk.resize(std::min<std::uint64_t>(chunk.size(), count - done));
      input_.read_index(array, first + done, std::span(chunk));
      take(std::span<const T>(chunk));
    }
  }

  void measure() {
    documents_ = static_cast<std::uint64_t>(point_.counts.documents);
    const formats::mmidx_view& idx = input_.view();
    expect_meta_of(input_, read_metas(std::span(&input_.paths().prefix, 1)).front());
    std::int64_t sequences = 0;
    if (documents_ != 0) {
      input_.read_index(idx.document_index_offset(), documents_, std::span(&sequences, 1));
    }
    if (sequences < 0 || sequences > idx.sequence_count()) {
      throw format_error(input_.paths().idx, idx.document_index_offset() + 8 * documents_,
                         fmt::format("a document ends before sequence {}, expected 0 to {}",
                                     sequences, idx.sequence_count()));
    }
    sequences_ = static_cast<std::uint64_t>(sequences);
    tokens_ = static_cast<std::uint64_t>(point_.tokens[key_]);
    bytes_ = tokens_ * formats::size_bytes(idx.type);
    if (bytes_ > idx.bin_size_bytes) {
      throw format_error(input_.paths().of(sidecar::cuts), 0,
                         fmt::format("it says that the first {} documents have {} bytes of tokens, "
                                     "but the .bin has {}",
                                     documents_, bytes_, idx.bin_size_bytes));
    }
  }

  void reserve() {
    dataset_state size;
    size.bin_bytes = bytes_;
    size.sequences = static_cast<std::int64_t>(sequences_);
    size.documents = point_.counts.documents;
    size.provenance.documents = documents_;
    if (const auto src = io::status_if_there(input_.paths().of(sidecar::src))) {
      size.provenance.payload_bytes = static_cast<std::uint64_t>(src->st_size);
    }
    size.mask.tokens = tokens_;
    std::vector<room_claim> claims;
    writer_.claim(size, dataset_writer::role::whole, 0, claims);
    reserve_all(claims, writer_.paths().prefix, "the part in which the run ends",
                "nothing was merged yet; free disk space, then run the same command again", stop_);
  }

  void copy_index() {
    const formats::mmidx_view& idx = input_.view();
    std::int64_t last = 0;
    const auto end = static_cast<std::int64_t>(sequences_);
    read_array<std::int64_t>(
        idx.document_index_offset(), 1, documents_, [&](std::span<const std::int64_t> ends) {
          for (const std::int64_t each : ends) {
            if (each < last || each > end) {
              throw format_error(
                  input_.paths().idx, idx.document_index_offset(),
                  fmt::format("a document ends before sequence {}, expected {} to {}", each, last,
                              end));
            }
            last = each;
          }
          writer_.append({}, {}, ends);
        });
    std::uint64_t tokens = 0;
    read_array<std::int32_t>(idx.lengths_offset(), 0, sequences_,
                             [&](std::span<const std::int32_t> lengths) {
                               for (const std::int32_t length : lengths) {
                                 tokens += static_cast<std::uint32_t>(length);
                               }
                               writer_.append({}, lengths, {});
                             });
    if (tokens == tokens_) return;
    throw format_error(
        input_.paths().of(sidecar::cuts), 0,
        fmt::format("it says that the first {} documents have {} tokens, but the .idx says {}",
                    documents_, tokens_, tokens));
  }

  void copy_tokens() {
    token_reader tokens(input_, meta_.sum_version.has_value(), stop_);
    tokens.for_each_piece(bytes_, [&](auto bytes) { writer_.append(bytes, {}, {}); });
    if (!meta_.sum_version) return;
    // The rest belongs to the same checksums.
    tokens.for_each_piece(input_.view().bin_size_bytes - bytes_, [](auto) {});
    tokens.finish();
  }

  void copy_places() {
    if (!meta_.src_version) return;
    const auto path = input_.paths().of(sidecar::src);
    const io::file_mapping file(path);
    try {
      const formats::src_view view = formats::parse_src(file.bytes());
      if (view.document_count() < documents_ || view.input_count() < meta_.inputs.size()) {
        throw format_error(16, "it has too few documents or inputs; it belongs to another dataset");
      }
      inputs_ = view.inputs();
      inputs_.resize(meta_.inputs.size());
      meta_.src_version = formats::src_version_of(inputs_);
      formats::src_cursor cursor(view);
      for (std::uint64_t left = documents_; left != 0;) {
        stop_.check();
        auto places = cursor.next();
        places = places.first(std::min<std::uint64_t>(places.size(), left));
        left -= places.size();
        writer_.append_places(places);
      }
    } catch (const format_error& e) {
      throw e.path().empty() ? e.in(path) : e;
    }
  }

  void copy_bad_lines() {
    const auto path = input_.paths().of(sidecar::bad);
    if (!is_file(path)) return;
    const io::file_mapping file(path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    std::size_t end = 0;
    for (std::int64_t left = point_.counts.bad_record_total(); left > 0; --left) {
      if (left % 4096 == 0) stop_.check();
      const std::size_t line_end = text.find('\n', end);
      if (line_end == text.npos) {
        throw format_error(
            path, text.size(),
            fmt::format("expected {} more bad records, found the end of the file", left));
      }
      end = line_end + 1;
    }
    writer_.append_bad(text.substr(0, end));
  }

  void copy_mask() {
    const part_mask mask(input_.paths().of(sidecar::mask),
                         input_.view().bin_size_bytes / formats::size_bytes(input_.view().type));
    const std::uint64_t step = 8 * written_bytes_at_a_time;
    for (std::uint64_t first = 0; first < tokens_; first += step) {
      stop_.check();
      writer_.append_mask(mask.bits(), first, std::min(first + step, tokens_));
    }
  }

  void finish() {
    const dataset_roots roots = writer_.finish(inputs_);
    const dataset_state written = writer_.state();
    set_counts(meta_.counts, point_.counts, written, meta_.type);
    meta_.bin_bytes = bytes_;
    if (meta_.sum_version) meta_.sum_root = roots.sum;
    if (meta_.mask) {
      meta_.mask->trained = static_cast<std::int64_t>(written.mask.trained);
      meta_.mask->root = roots.mask;
    }
    writer_.finish_meta(to_json(meta_));
    publish_dataset(writer_.paths(), writer_.sidecars());
  }

  merge_input input_;
  formats::dataset_meta meta_;
  const cut_point& point_;
  const stop_flag& stop_;
  std::size_t key_;
  dataset_writer writer_;
  std::vector<formats::src_input> inputs_;
  std::uint64_t documents_ = 0;
  std::uint64_t sequences_ = 0;
  std::uint64_t tokens_ = 0;
  std::uint64_t bytes_ = 0;
};

std::int64_t budget_of(const std::filesystem::path& part, const formats::dataset_meta& meta) {
  const std::string& text = *most_tokens_of(meta);
  std::int64_t budget = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, problem] = std::from_chars(text.data(), text_end, budget);
  if (problem == std::errc() && end == text_end && budget >= 1) return budget;
  throw format_error(
      dataset_paths(part).of(sidecar::meta), 0,
      fmt::format("\"--max-tokens\" is {}, expected 1 to 2^63 - 1", formats::in_quotes(text)));
}

void expect_files(std::span<const std::filesystem::path> parts, sidecar which) {
  for (const auto& part : parts) {
    const auto path = dataset_paths(part).of(which);
    if (is_file(path)) continue;
    throw config_error(fmt::format(
        "there is no {}; the parts of tasks with --max-tokens are merged with their .meta and "
        ".cuts, which say where the run ends: move it here, or run that task again with "
        "--overwrite",
        path.string()));
  }
}

std::vector<std::filesystem::path> with_meta(std::span<const std::filesystem::path> parts) {
  std::vector<std::filesystem::path> found;
  for (const auto& part : parts) {
    if (is_file(dataset_paths(part).of(sidecar::meta))) found.push_back(part);
  }
  return found;
}

}  // namespace

std::string merge_folder(const std::filesystem::path& output_prefix) {
  return fmt::format(".millrace-merge-{}-", output_prefix.filename().string());
}

void remove_merge_folders(const std::filesystem::path& output_prefix) {
  const std::string start = merge_folder(output_prefix);
  const auto parent = io::parent_folder(output_prefix);
  std::vector<std::filesystem::path> found;
  std::error_code problem;
  std::filesystem::directory_iterator entries(parent, problem);
  for (; !problem && entries != std::filesystem::directory_iterator(); entries.increment(problem)) {
    const std::string name = entries->path().filename().string();
    if (name.starts_with(start) && name.size() == start.size() + 6) {
      found.push_back(entries->path());
    }
  }
  if (problem) throw io_error(parent, "readdir", problem.value());
  for (const auto& folder : found) {
    std::filesystem::remove_all(folder, problem);
    if (problem) throw io_error(folder, "remove", problem.value());
  }
}

bool have_budget(std::span<const std::filesystem::path> parts) {
  const auto has_cuts = [](const std::filesystem::path& part) {
    return is_file(dataset_paths(part).of(sidecar::cuts));
  };
  const auto is_limited = [](const formats::dataset_meta& meta) {
    return meta.tasks && most_tokens_of(meta) != nullptr;
  };
  return std::ranges::any_of(parts, has_cuts) ||
         std::ranges::any_of(read_metas(with_meta(parts)), is_limited);
}

std::optional<run_end> find_run_end(std::span<const std::filesystem::path> parts,
                                    std::span<const formats::dataset_meta> metas,
                                    const std::function<bool(std::uint64_t)>& is_dropped,
                                    const stop_flag& stop) {
  expect_files(parts, sidecar::cuts);
  stop.check();
  budget_search search(parts, metas, budget_of(parts.front(), metas.front()), is_dropped, stop);
  auto stopped_at = search.find();
  if (!stopped_at) return std::nullopt;

  // If one process would have read nothing of a part, the run ends in an earlier one.
  run_end end{.stopped_before = *std::move(stopped_at),
              .part = search.ends().size() - 1,
              .point = {},
              .meta = {},
              .key = search.key()};
  for (;; --end.part) {
    end.meta = metas[end.part];
    const bool earlier_has_inputs =
        std::ranges::any_of(metas.first(end.part),
                            [](const formats::dataset_meta& each) { return !each.inputs.empty(); });
    cut_inputs(end.meta, search.ends()[end.part], earlier_has_inputs);
    if (!end.meta.inputs.empty() || end.part == 0) break;
  }
  end.point = search.ends()[end.part].point;
  if (auto& tasks = end.meta.tasks) {
    tasks->last = tasks->of - 1;
    const auto& last_share = metas.back().tasks->share;
    if (tasks->share && last_share) {
      tasks->share->end = last_share->end;
    } else {
      tasks->share.reset();
    }
    if (tasks->first == 0) tasks.reset();
  }
  drop_stop(end.meta);
  end.meta.options.emplace_back(stopped_before, end.stopped_before);
  return end;
}

// Checks all parts, also those that will be left out: with a task missing, or with other inputs,
// the run would end at another document.
void expect_tasks_of_one_run(std::span<const std::filesystem::path> parts,
                             std::vector<formats::dataset_meta> metas, std::string_view flag) {
  bool ended = false;
  for (formats::dataset_meta& meta : metas) {
    // A task that ended early has only a part of its last input, so the next task does not continue
    // that.
    if (ended) meta.inputs.clear();
    ended = ended || stop_of(meta) != nullptr;
    drop_stop(meta);
  }
  (void)concatenated(parts, metas);
  if (!metas.front().tasks) return;
  const formats::task_range& first = metas.front().tasks.value();
  const formats::task_range& last = metas.back().tasks.value();
  if (first.first == 0 && last.last == last.of - 1) return;
  throw config_error(fmt::format(
      "{}: with {}, all tasks are merged at once, because all earlier ones decide which documents "
      "the run has: expected tasks 0 to {}, found {} to {}",
      dataset_paths(parts.front()).of(sidecar::meta).string(), flag, last.of - 1, first.first,
      last.last));
}

budgeted_parts within_budget(std::span<const std::filesystem::path> parts,
                             const std::filesystem::path& folder, const stop_flag& stop) {
  budgeted_parts kept{.prefixes = {parts.begin(), parts.end()}};
  expect_files(parts, sidecar::meta);
  const std::vector<formats::dataset_meta> metas = read_metas(parts);
  expect_tasks_of_one_run(parts, metas, "--max-tokens");
  if (!metas.front().tasks || most_tokens_of(metas.front()) == nullptr) return kept;
  const auto end = find_run_end(parts, metas, {}, stop);
  if (!end) return kept;
  kept.stopped_before = end->stopped_before;
  const auto copy = folder / parts[end->part].filename();
  part_copy(parts[end->part], end->meta, end->point, end->key, copy, stop).write();
  kept.prefixes.resize(end->part);
  kept.prefixes.push_back(copy);
  return kept;
}

}  // namespace millrace::preprocess
