// SPDX-License-Identifier: Apache-2.0
//
// Prints rows of Parquet files as lines of JSON, which tests compare with what another program
// reads.
//
//   parquet_rows [--pieces] FILE [COLUMN[.FIELD]...]    all columns if none is given
//   parquet_rows --lists FILE COLUMN                    a column of lists of integers
//   parquet_rows --batch < CASES                        for each line FILE<TAB>COLUMN...: the
//   number of
//                                                       lines and bytes, then the lines; or an
//                                                       error
//
// --pieces reads each row group in pieces, from each row at which reading can begin.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/parquet/file.hpp>
#include <millrace/parquet/list_reader.hpp>
#include <millrace/parquet/row_reader.hpp>
#include <millrace/parquet/selection.hpp>

namespace {

namespace parquet = millrace::parquet;

class string_sink final : public parquet::text_sink {
 public:
  char* room(std::size_t bytes) override {
    if (bytes > buffer_.size() - size_) buffer_.resize(2 * buffer_.size() + bytes);
    return buffer_.data() + size_;
  }
  void filled(std::size_t bytes) override { size_ += bytes; }

  std::string_view text() const { return std::string_view(buffer_).substr(0, size_); }
  void clear() { size_ = 0; }

 private:
  std::string buffer_;
  std::size_t size_ = 0;
};

parquet::column_path path_of(const std::string& dotted) {
  parquet::column_path path;
  std::istringstream in(dotted);
  for (std::string name; std::getline(in, name, '.');) path.push_back(name);
  return path;
}

parquet::selection select(const std::string& name, const std::vector<std::string>& columns) {
  const auto file = parquet::file::open(name);
  std::vector<parquet::column_path> paths;
  for (const std::string& column : columns) paths.push_back(path_of(column));
  if (paths.empty()) {
    for (const std::string& column : file->column_names()) paths.push_back({column});
  }
  return {file, paths};
}

/// Calls `use` with each part of the lines.
template <class Use>
std::uint64_t read(const parquet::selection& columns, bool in_pieces, Use use) {
  string_sink sink;
  std::uint64_t lines = 0;
  for (std::size_t group = 0; group < columns.file().row_groups().size(); ++group) {
    const std::uint64_t rows = columns.file().row_groups()[group].rows;
    const auto begins = in_pieces ? columns.cut_rows(group) : std::vector<parquet::row_cut>{{}};
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const bool is_last = i + 1 == begins.size();
      std::uint64_t left = (is_last ? rows : begins[i + 1].row) - begins[i].row;
      parquet::row_reader reader(columns, group, begins[i]);
      while (left != 0 || is_last) {
        const std::uint64_t n = reader.read(sink, is_last ? rows + 1 : left, 1 << 20);
        if (n == 0) break;
        left -= is_last ? 0 : n;
        lines += n;
        use(sink.text());
        sink.clear();
      }
    }
  }
  return lines;
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_lists(const parquet::selection& column) {
  std::vector<std::int32_t> list;
  for (std::size_t group = 0; group < column.file().row_groups().size(); ++group) {
    parquet::list_reader reader(column, group);
    while (reader.next(list)) {
      std::string line = "[";
      for (const std::int32_t each : list) {
        if (line.size() != 1) line += ',';
        line += std::to_string(each);
      }
      print(line + "]\n");
    }
  }
}

/// Reads the second half of each row group alone. Its lines must be the end of `whole`'s.
bool halves_agree(const parquet::selection& columns, std::string_view whole) {
  for (std::size_t group = 0; group < columns.file().row_groups().size(); ++group) {
    const std::uint64_t rows = columns.file().row_groups()[group].rows;
    std::size_t begin = 0;
    for (std::uint64_t row = 0; row < rows / 2; ++row) begin = whole.find('\n', begin) + 1;
    std::size_t end = begin;
    for (std::uint64_t row = rows / 2; row < rows; ++row) end = whole.find('\n', end) + 1;
    string_sink sink;
    parquet::row_reader reader(columns, group, rows / 2);
    while (reader.read(sink, 10, 100) != 0) continue;
    if (sink.text() != whole.substr(begin, end - begin)) return false;
    whole.remove_prefix(end);
  }
  return whole.empty();
}

void run_case(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> columns;
  std::string name;
  std::getline(in, name, '\t');
  for (std::string column; std::getline(in, column, '\t');) columns.push_back(column);
  try {
    std::string whole;
    std::string pieces;
    const auto selected = select(name, columns);
    const std::uint64_t lines = read(selected, false, [&](auto part) { whole += part; });
    (void)read(selected, true, [&](auto part) { pieces += part; });
    if (pieces != whole) throw millrace::error(name + ": the pieces differ from the whole");
    if (!halves_agree(selected, whole)) throw millrace::error(name + ": a half differs");
    std::printf("%llu %zu\n", static_cast<unsigned long long>(lines), whole.size());
    print(whole);
  } catch (const millrace::error& e) {
    std::printf("error %s\n", e.what());
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto has = [&](const char* flag) {
    if (arguments.empty() || arguments.front() != flag) return false;
    arguments.erase(arguments.begin());
    return true;
  };
  try {
    if (has("--batch")) {
      for (std::string line; std::getline(std::cin, line);) run_case(line);
      return 0;
    }
    const bool in_pieces = has("--pieces");
    const bool as_lists = has("--lists");
    if (arguments.empty()) {
      std::fputs("usage: parquet_rows [--pieces|--lists] FILE [COLUMN[.FIELD]...]\n", stderr);
      return 2;
    }
    const auto columns = select(arguments.front(), {arguments.begin() + 1, arguments.end()});
    if (as_lists) {
      print_lists(columns);
    } else {
      (void)read(columns, in_pieces, print);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
