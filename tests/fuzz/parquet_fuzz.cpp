// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/parquet/file.hpp>
#include <millrace/parquet/list_reader.hpp>
#include <millrace/parquet/row_reader.hpp>
#include <millrace/parquet/selection.hpp>

namespace {

namespace parquet = millrace::parquet;

// Few bytes can state billions of rows, and a row of billions of elements.
constexpr std::size_t most_text = std::size_t{1} << 20;
struct too_long {};

class short_sink final : public parquet::text_sink {
 public:
  char* room(std::size_t bytes) override {
    if (text_.size() > most_text) throw too_long();
    room_.resize(bytes);
    return room_.data();
  }
  void filled(std::size_t bytes) override { text_.append(room_.data(), bytes); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::vector<char> room_;
};

/// The lines from a row on, or nothing if they are refused or too long.
std::optional<std::string> lines(const parquet::selection& columns, std::size_t row_group,
                                 const parquet::row_cut& from, std::uint64_t at_once) {
  short_sink sink;
  try {
    parquet::row_reader rows(columns, row_group, from);
    while (rows.read(sink, at_once, most_text) != 0) continue;
  } catch (const millrace::error&) {
    return std::nullopt;
  } catch (const too_long&) {
    return std::nullopt;
  }
  return sink.take();
}

void check_lists(const parquet::selection& columns, std::size_t row_group) {
  try {
    parquet::list_reader rows(columns, row_group);
    std::vector<std::int32_t> list;
    while (rows.next(list)) continue;
  } catch (const millrace::error&) {
    return;
  }
}

void check_cuts(const parquet::selection& columns, std::size_t row_group,
                const std::string& whole) {
  const std::vector<parquet::row_cut> cuts = columns.cut_rows(row_group);
  if (cuts.empty() || cuts.front().row != 0) std::abort();
  std::size_t offset = 0;
  std::uint64_t row = 0;
  for (std::size_t i = 0; i < cuts.size(); i += 1 + cuts.size() / 4) {
    for (; row < cuts[i].row; ++row) offset = whole.find('\n', offset) + 1;
    if (lines(columns, row_group, cuts[i], 7) != whole.substr(offset)) std::abort();
    if (lines(columns, row_group, {row, 0}, 7) != whole.substr(offset)) std::abort();
  }
}

void check(const std::shared_ptr<const parquet::file>& file,
           const std::vector<parquet::column_path>& paths) {
  try {
    const parquet::selection columns(file, paths);
    const std::size_t groups = std::min<std::size_t>(file->row_groups().size(), 3);
    for (std::size_t group = 0; group < groups; ++group) {
      (void)columns.text_bytes(group);
      (void)columns.file_offset(group);
      const auto whole = lines(columns, group, {}, UINT64_MAX);
      if (!whole) continue;
      check_lists(columns, group);
      check_cuts(columns, group, *whole);
    }
  } catch (const millrace::error&) {
    return;
  }
}

}  // namespace

/// Any bytes must be read or refused. Rows that can be read whole must be the same if they are read
/// in parts, or from a row at which reading can begin.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const millrace::io::unique_fd fd(::memfd_create("parquet", MFD_CLOEXEC));
  if (!fd) return 0;
  if (size != 0 && ::write(fd.get(), data, size) != static_cast<::ssize_t>(size)) return 0;
  try {
    const auto file = parquet::file::open("/proc/self/fd/" + std::to_string(fd.get()));
    std::vector<parquet::column_path> all;
    for (const std::string& name : file->column_names()) {
      check(file, {{name}});
      all.push_back({name});
    }
    check(file, all);
  } catch (const millrace::error&) {
    return 0;
  }
  return 0;
}
