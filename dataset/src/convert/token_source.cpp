// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset/convert.hpp>
#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/packed_parquet.hpp>
#include <millrace/formats/detail/token_arrays.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_ops.hpp>

#include "packed_rows_source.hpp"
#include "token_source.hpp"

namespace millrace::dataset {

MILLRACE_INLINE std::string_view name(token_format format) noexcept {
  constexpr std::array<std::string_view, 6> names = {"megatron", "nanoset", "olmo",
                                                     "llm.c",    "nanogpt", "bridge"};
  return names[static_cast<std::size_t>(format)];
}

MILLRACE_INLINE std::optional<token_format> token_format_of(std::string_view text) noexcept {
  for (const auto format : {token_format::megatron, token_format::nanoset, token_format::olmo,
                            token_format::llm_c, token_format::nanogpt, token_format::bridge}) {
    if (name(format) == text) return format;
  }
  return std::nullopt;
}

namespace detail {

MILLRACE_INLINE std::filesystem::path with_ending(std::filesystem::path path, const char* ending) {
  return path += ending;
}

/// The first `most` bytes of a file, and its size.
struct file_head {
  std::vector<std::byte> bytes;
  std::uint64_t size = 0;
};

MILLRACE_INLINE file_head read_head(const std::filesystem::path& path, std::size_t most) {
  const io::unique_fd fd = io::open_read_only(path, O_NONBLOCK);
  file_head head{std::vector<std::byte>(most), io::regular_file_size(fd, path)};
  head.bytes.resize(io::pread_some(fd, head.bytes, 0, path));
  return head;
}

/// The number of tokens in an array of `size` bytes.
MILLRACE_INLINE std::int64_t tokens_of(const std::filesystem::path& path, std::uint64_t size,
                                       formats::dtype type) {
  const std::uint64_t item = formats::size_bytes(type);
  if (size % item != 0) {
    throw format_error(path, size - size % item,
                       "the file has " + std::to_string(size) + " bytes, expected a multiple of " +
                           std::to_string(item) + ", the bytes of a token");
  }
  return static_cast<std::int64_t>(size / item);
}

/// Reads `.ds.index`: the end of each document as uint64.
class index_reader {
 public:
  index_reader(std::filesystem::path path, std::int64_t tokens)
      : path_(std::move(path)),
        fd_(io::open_read_only(path_, O_NONBLOCK)),
        size_(io::regular_file_size(fd_, path_)),
        tokens_(tokens) {
    if (size_ % 8 != 0) {
      throw format_error(path_, size_ - size_ % 8,
                         "the file has " + std::to_string(size_) +
                             " bytes, expected a multiple of 8, the bytes of a document end");
    }
  }

  std::optional<std::int64_t> next() {
    if (at_ == count_ && !fill()) {
      if (last_ == tokens_) return std::nullopt;
      throw format_error(path_, size_,
                         "the last document ends at token " + std::to_string(last_) +
                             ", expected " + std::to_string(tokens_) + ", the number of tokens");
    }
    const std::uint64_t end = ends_[at_];
    if (end < static_cast<std::uint64_t>(last_) || end > static_cast<std::uint64_t>(tokens_)) {
      throw format_error(path_, offset_ - 8 * (count_ - at_),
                         "the end of a document is token " + std::to_string(end) + ", expected " +
                             std::to_string(last_) + " to " + std::to_string(tokens_));
    }
    ++at_;
    return last_ = static_cast<std::int64_t>(end);
  }

 private:
  bool fill() {
    const auto bytes = std::as_writable_bytes(std::span(ends_));
    const std::size_t found = io::pread_some(fd_, bytes, offset_, path_);
    offset_ += found;
    count_ = found / 8;
    at_ = 0;
    return count_ != 0;
  }

  std::filesystem::path path_;
  io::unique_fd fd_;
  std::uint64_t size_;
  std::int64_t tokens_;
  std::array<std::uint64_t, 8192> ends_{};
  std::size_t at_ = 0;
  std::size_t count_ = 0;
  std::uint64_t offset_ = 0;
  std::int64_t last_ = 0;
};

using open_text_function =
    std::function<std::unique_ptr<std::istream>(const std::filesystem::path&)>;

MILLRACE_INLINE std::unique_ptr<std::istream> open_text_file(const std::filesystem::path& path,
                                                             const open_text_function& open) {
  (void)io::open_read_only(path, O_NONBLOCK);  // a stream would not say why it cannot be opened
  if (open) return open(path);
  if (path.extension() == ".gz") {
    throw config_error(path.string() +
                       " is compressed; pass convert_options::open_text, or the "
                       "decompressed file as `boundaries`");
  }
  return std::make_unique<std::ifstream>(path, std::ios::binary);
}

/// Reads lines of END or BEGIN,END.
class row_reader {
 public:
  row_reader(std::filesystem::path path, std::int64_t tokens, const open_text_function& open)
      : path_(std::move(path)), text_(open_text_file(path_, open)), tokens_(tokens) {}

  bool has_more_columns() const noexcept { return has_more_; }

  std::optional<std::int64_t> next() {
    std::string line;
    if (!std::getline(*text_, line)) {
      if (text_->bad()) throw io_error(path_, "read (is it a complete gzip file?)", EIO);
      if (last_ == tokens_) return std::nullopt;
      throw format_error(path_, offset_,
                         "the tokens from " + std::to_string(last_) + " to " +
                             std::to_string(tokens_) +
                             " belong to no document; expected a last document that ends at " +
                             std::to_string(tokens_) + ", the number of tokens");
    }
    const std::uint64_t at = offset_;
    offset_ += line.size() + 1;
    ++line_;
    const auto fail = [&](const std::string& what) {
      throw format_error(path_, at, "line " + std::to_string(line_) + " " + what);
    };
    const auto row = formats::parse_array_row(line);
    if (!row) fail("is " + formats::in_quotes(line) + ", expected END or BEGIN,END");
    has_more_ = has_more_ || row->has_more;
    if (row->begin && *row->begin != last_) {
      fail("begins a document at token " + std::to_string(*row->begin) + ", expected " +
           std::to_string(last_) + ", where the previous one ends");
    }
    if (row->end < last_ || row->end > tokens_) {
      fail("ends a document at token " + std::to_string(row->end) + ", expected " +
           std::to_string(last_) + " to " + std::to_string(tokens_));
    }
    return last_ = row->end;
  }

 private:
  std::filesystem::path path_;
  std::unique_ptr<std::istream> text_;
  std::int64_t tokens_;
  std::uint64_t offset_ = 0;
  std::int64_t line_ = 0;
  std::int64_t last_ = 0;
  bool has_more_ = false;
};

/// The ends of documents of one file after another.
/// @param open_one  opens the ends in file i, counted from the start of this file
MILLRACE_INLINE next_end ends_of_all(const std::vector<token_file>& files,
                                     const std::function<next_end(std::size_t)>& open_one) {
  struct place {
    std::size_t file = 0;
    std::int64_t base = 0;
    next_end next;
  };
  auto at = std::make_shared<place>();
  return [at, files, open_one]() -> std::optional<std::int64_t> {
    while (at->file < files.size()) {
      if (!at->next) at->next = open_one(at->file);
      if (const auto end = at->next()) return at->base + *end;
      at->base += files[at->file].tokens;
      at->next = nullptr;
      ++at->file;
    }
    return std::nullopt;
  };
}

MILLRACE_INLINE formats::dtype type_of_array(const std::filesystem::path& path,
                                             std::span<const std::byte> head,
                                             const convert_options& options, token_format format) {
  if (formats::begins_as_npy(head)) {
    throw config_error(path.string() + " has a header of numpy, so it is not an array of " +
                       std::string(name(format)) +
                       "; write its tokens with numpy's tofile, which writes no header");
  }
  if (formats::begins_as_llm_c(head)) {
    throw config_error(path.string() + " begins with the header of llm.c; pass --from llm.c");
  }
  if (!options.type) {
    throw config_error(path.string() + ": an array of " + std::string(name(format)) +
                       " does not tell the type of its tokens; pass --dtype uint16 or uint32");
  }
  return *options.type;
}

MILLRACE_INLINE void open_dataset(std::span<const std::filesystem::path> inputs,
                                  const convert_options& options, token_source& source) {
  if (inputs.size() > 1) {
    throw config_error("expected one dataset, found " + std::to_string(inputs.size()) +
                       "; join them first, with merge_datasets");
  }
  if (options.type || !options.boundaries.empty()) {
    throw config_error("--dtype and --boundaries are for arrays; " + inputs.front().string() +
                       " is a dataset, which has both in its .idx");
  }
  std::filesystem::path prefix = inputs.front();
  if (prefix.extension() == ".idx" || prefix.extension() == ".bin") prefix.replace_extension();
  source.data = std::make_shared<indexed_dataset>(prefix, open_options{.check = check_level::full});
  const indexed_dataset& data = *source.data;
  source.type = data.type();
  if (source.type == formats::dtype::float32 || source.type == formats::dtype::float64) {
    throw config_error(prefix.string() + ": the tokens are " +
                       std::string(formats::name(source.type)) +
                       "; only datasets of integers can be converted");
  }
  source.files.push_back({data.bin_path(), 0, data.token_count()});
  source.places = document_sources::find(data);
  source.mask = token_mask::find(data);
  if (source.mask) source.mask->verify();
  source.open_ends = [kept = source.data]() -> next_end {
    return [kept, d = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
      if (d == kept->document_count()) return std::nullopt;
      const std::int64_t last = kept->document(d++).last;
      if (last == kept->sequence_count()) return kept->token_count();
      return kept->index().pointers[static_cast<std::size_t>(last)] /
             static_cast<std::int64_t>(formats::size_bytes(kept->type()));
    };
  };
}

MILLRACE_INLINE void open_nanoset(std::span<const std::filesystem::path> inputs,
                                  const convert_options& options, token_source& source) {
  std::optional<formats::dtype> type = options.type;
  bool all_have_index = true;
  for (const auto& path : inputs) {
    const auto metadata_path = with_ending(path, ".metadata");
    std::optional<formats::nanoset_metadata> metadata;
    if (io::is_there(metadata_path)) {
      const auto head = read_head(metadata_path, 1 << 16);
      try {
        metadata = formats::parse_nanoset_metadata(
            {reinterpret_cast<const char*>(head.bytes.data()), head.bytes.size()});
      } catch (const format_error& e) {
        throw e.in(metadata_path);
      }
      if (type && *type != metadata->type) {
        throw config_error(metadata_path.string() + " says that a token has " +
                           std::to_string(formats::size_bytes(metadata->type)) + " bytes, but " +
                           (options.type ? "--dtype says " : "the inputs before it have ") +
                           std::to_string(formats::size_bytes(*type)));
      }
      type = metadata->type;
      if (source.tokenizer.empty()) source.tokenizer = metadata->tokenizer;
    }
    if (!type) {
      throw config_error("there is no " + metadata_path.string() +
                         ", which has the bytes of a token; pass --dtype uint16 or uint32");
    }
    const auto size = read_head(path, 0).size;
    source.files.push_back({path, 0, tokens_of(path, size, *type)});
    if (metadata && metadata->tokens != source.files.back().tokens) {
      const std::size_t second_line = metadata->tokenizer.size() + std::string_view("|2\n").size();
      throw format_error(metadata_path, second_line,
                         "it counts " + std::to_string(metadata->tokens) + " tokens, but " +
                             path.string() + " has " + std::to_string(source.files.back().tokens));
    }
    all_have_index = all_have_index && io::is_there(with_ending(path, ".index"));
  }
  source.type = *type;
  if (!all_have_index) return;
  source.open_ends = [files = source.files] {
    return ends_of_all(files, [files](std::size_t i) -> next_end {
      auto reader =
          std::make_shared<index_reader>(with_ending(files[i].path, ".index"), files[i].tokens);
      return [reader] { return reader->next(); };
    });
  };
}

MILLRACE_INLINE next_end open_rows(const std::filesystem::path& path, std::int64_t tokens,
                                   const convert_options& options) {
  auto reader = std::make_shared<row_reader>(path, tokens, options.open_text);
  return [reader] { return reader->next(); };
}

MILLRACE_INLINE void open_arrays(std::span<const std::filesystem::path> inputs,
                                 const convert_options& options, token_source& source) {
  bool all_have_rows = source.format == token_format::olmo;
  const auto rows_of = [](std::filesystem::path path) { return path.replace_extension(".csv.gz"); };
  for (const auto& path : inputs) {
    const auto head = read_head(path, 8);
    source.type = type_of_array(path, head.bytes, options, source.format);
    source.files.push_back({path, 0, tokens_of(path, head.size, source.type)});
    all_have_rows = all_have_rows && io::is_there(rows_of(path));
  }
  if (!all_have_rows || !options.boundaries.empty()) return;
  source.open_ends = [files = source.files, rows_of, &options] {
    return ends_of_all(files, [files, rows_of, &options](std::size_t i) {
      return open_rows(rows_of(files[i].path), files[i].tokens, options);
    });
  };
  // Only the first row: all rows of dolma have the same columns.
  for (const token_file& file : source.files) {
    row_reader rows(rows_of(file.path), file.tokens, options.open_text);
    (void)rows.next();
    if (!rows.has_more_columns()) continue;
    source.lost.push_back("the columns after begin and end in " + rows_of(file.path).string() +
                          ", such as ids and sources of documents");
  }
}

MILLRACE_INLINE void open_llm_c(std::span<const std::filesystem::path> inputs,
                                const convert_options& options, token_source& source) {
  if (options.type) {
    throw config_error("--dtype is for arrays that do not tell their type; files of llm.c do");
  }
  for (const auto& path : inputs) {
    const auto head = read_head(path, formats::llm_c_header_bytes);
    formats::llm_c_view found;
    try {
      found = formats::parse_llm_c(head.bytes, head.size);
    } catch (const format_error& e) {
      throw e.in(path);
    }
    if (!source.files.empty() && found.type != source.type) {
      throw config_error(path.string() + ": its tokens have " +
                         std::to_string(formats::size_bytes(found.type)) +
                         " bytes, those of the inputs before it " +
                         std::to_string(formats::size_bytes(source.type)));
    }
    source.type = found.type;
    source.files.push_back({path, formats::llm_c_header_bytes, found.tokens});
  }
}

/// Finds the masks of all arrays. Without one, a model would learn from all tokens, so either all
/// arrays have one or none.
MILLRACE_INLINE void find_masks(token_source& source) {
  if (source.format != token_format::nanoset && source.format != token_format::olmo) return;
  std::vector<std::filesystem::path> found;
  std::string without;
  for (const token_file& file : source.files) {
    const auto path = mask_path(file.path, source.format);
    if (!io::is_there(path)) {
      without = path.string();
      continue;
    }
    const auto size = read_head(path, 0).size;
    if (size != static_cast<std::uint64_t>(file.tokens)) {
      throw format_error(path, std::min(size, static_cast<std::uint64_t>(file.tokens)),
                         "the mask has " + std::to_string(size) + " bytes, expected " +
                             std::to_string(file.tokens) + ", one per token of " +
                             file.path.string());
    }
    found.push_back(path);
  }
  if (!found.empty() && !without.empty()) {
    throw config_error("there is no " + without + ", but there is " + found.front().string() +
                       "; convert inputs with masks and inputs without separately");
  }
  source.mask_files = std::move(found);
}

MILLRACE_INLINE std::filesystem::path mask_path(const std::filesystem::path& array,
                                                token_format format) {
  if (format == token_format::nanoset) return with_ending(array, ".loss");
  const std::string name = array.filename().string();
  constexpr std::string_view ids = "token_ids";
  return array.parent_path() /
         (name.starts_with(ids) ? "labels_mask" + name.substr(ids.size()) : "labels_mask_" + name);
}

MILLRACE_INLINE void for_each_mask_piece(
    const token_source& source, const std::function<void(const formats::bit_span& bits)>& take) {
  if (source.mask) return take(source.mask->bits());
  std::vector<std::byte> bytes(std::size_t{1} << 20);
  formats::bit_buffer bits;
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    const auto& path = source.mask_files[i];
    const io::unique_fd fd = io::open_read_only(path, O_NONBLOCK);
    const auto size = static_cast<std::uint64_t>(source.files[i].tokens);
    for (std::uint64_t at = 0; at < size; at += bytes.size()) {
      const auto part = std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), size - at));
      const std::size_t found = io::pread_some(fd, part, at, path);
      if (found != part.size()) {
        throw format_error(path, at + found, "the file became shorter while it was being read");
      }
      bits.clear();
      for (std::size_t k = 0; k < part.size(); ++k) {
        if (part[k] > std::byte{1}) {
          throw format_error(path, at + k,
                             "the byte of a token is " +
                                 std::to_string(std::to_integer<int>(part[k])) +
                                 ", expected 1 if it is to be predicted, or 0");
        }
        bits.append_word(std::to_integer<std::uint64_t>(part[k]), 1);
      }
      take(bits.bits());
    }
  }
}

MILLRACE_INLINE token_source open_source(std::span<const std::filesystem::path> inputs,
                                         const convert_options& options) {
  token_source source;
  std::optional<token_format> format = options.from;
  for (const auto& path : inputs) {
    if (options.from) break;
    const auto found = recognize(path);
    if (!found) {
      throw config_error("the format of " + path.string() +
                         " cannot be recognized; pass --from nanogpt or --from olmo for an array "
                         "without a header, or --from megatron, nanoset or llm.c");
    }
    if (format && found != format) {
      throw config_error(path.string() + " is of the format " + std::string(name(*found)) +
                         ", the inputs before it are of " + std::string(name(*format)) +
                         "; convert them separately");
    }
    format = found;
  }
  source.format = *format;
  if (options.to == token_format::bridge &&
      (source.format != token_format::megatron || inputs.size() != 1)) {
    throw config_error(
        "packed rows are made from one dataset, PREFIX.bin and PREFIX.idx; convert the inputs to "
        "one first, --to megatron");
  }
  switch (source.format) {
    case token_format::bridge:
      open_packed_rows(inputs, options, source);
      break;
    case token_format::megatron:
      open_dataset(inputs, options, source);
      break;
    case token_format::nanoset:
      open_nanoset(inputs, options, source);
      break;
    case token_format::llm_c:
      open_llm_c(inputs, options, source);
      break;
    case token_format::olmo:
    case token_format::nanogpt:
      open_arrays(inputs, options, source);
  }
  find_masks(source);
  for (const token_file& file : source.files) source.tokens += file.tokens;
  if (!options.boundaries.empty()) {
    source.open_ends = [tokens = source.tokens, &options] {
      return open_rows(options.boundaries, tokens, options);
    };
  }
  if (source.open_ends) {
    std::int64_t before = 0;
    for (const next_end next = source.open_ends(); const auto end = next();) {
      ++source.documents;
      source.empty_documents += *end == before ? 1 : 0;
      before = *end;
    }
  }
  return source;
}

}  // namespace detail

MILLRACE_INLINE std::optional<token_format> recognize(const std::filesystem::path& path) {
  auto idx = path;
  if (path.extension() == ".idx" || io::is_there(detail::with_ending(path, ".idx")) ||
      (path.extension() == ".bin" && io::is_there(idx.replace_extension(".idx")))) {
    return token_format::megatron;
  }
  if (path.extension() == ".ds") return token_format::nanoset;
  if (path.extension() == ".parquet" || path.extension() == ".pq") return token_format::bridge;
  const auto head = detail::read_head(path, 4).bytes;
  if (formats::begins_as_llm_c(head)) return token_format::llm_c;
  if (std::ranges::equal(head, std::as_bytes(std::span(formats::parquet_magic)))) {
    return token_format::bridge;
  }
  return std::nullopt;
}

}  // namespace millrace::dataset
