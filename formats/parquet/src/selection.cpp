// SPDX-License-Identifier: Apache-2.0
#include <millrace/parquet/selection.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "codec.hpp"
#include "file_contents.hpp"
#include "page_reader.hpp"

namespace millrace::parquet {
namespace {

using detail::node;
using detail::selected_columns;
using detail::selected_leaf;
using detail::selected_node;

std::string joined(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ".") + name;
  return text;
}

std::string listed(const std::vector<node>& nodes) {
  constexpr std::size_t most = 40;
  std::string text;
  for (std::size_t i = 0; i < std::min(nodes.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + formats::in_quotes(nodes[i].name);
  }
  if (nodes.size() > most) text += ", and " + std::to_string(nodes.size() - most) + " more";
  return text.empty() ? "none" : text;
}

/// The name of a key as JSON, with a colon. A key is short, so this need not be fast.
std::string json_key(std::string_view name, bool with_comma) {
  std::string text(with_comma ? ",\"" : "\"");
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (text += '\\') += c;
    } else if (byte < 0x20) {
      text += {'\\', 'u', '0', '0', formats::hex_digits[byte >> 4], formats::hex_digits[byte & 15]};
    } else {
      text += c;
    }
  }
  return text + "\":";
}

/// What paths select: a part of the tree.
struct choice {
  bool is_whole = false;
  std::vector<std::pair<std::size_t, choice>> fields{};  // child and its choice

  choice& field(std::size_t child) {
    for (auto& [number, inner] : fields) {
      if (number == child) return inner;
    }
    return fields.emplace_back(child, choice{}).second;
  }
};

class selector {
 public:
  explicit selector(selected_columns& to) : to_(to), file_(to.contents()) {}

  void select(std::span<const column_path> paths) {
    if (paths.empty()) refuse("no column was selected; expected at least one");
    choice root;
    for (const column_path& path : paths) add(path, root);
    to_.root.form = node::shape::structure;
    std::string name;
    add_fields(file_.schema.root, root, {}, name, to_.root);
  }

 private:
  struct levels {
    std::uint8_t definition = 0;
    std::uint8_t repetition = 0;
  };

  [[noreturn]] void refuse(const std::string& problem) const {
    throw config_error(file_.path.string() + ": " + problem);
  }

  void add(const column_path& path, choice& root) const {
    if (path.empty()) refuse("a column path without a name was given; expected at least one name");
    const node* at = &file_.schema.root;
    choice* chosen = &root;
    for (std::size_t i = 0; i < path.size(); ++i) {
      const std::size_t child = find(*at, std::span(path).first(i), path[i]);
      chosen = &chosen->field(child);
      at = &at->children[child];
    }
    chosen->is_whole = true;
  }

  /// The number of the field `name` of the node `at`, whose path is `above`.
  std::size_t find(const node& at, std::span<const std::string> above,
                   const std::string& name) const {
    const std::string path = joined(above);
    if (at.form != node::shape::structure || !at.refusal.empty()) {
      const std::string what = !at.refusal.empty()            ? at.refusal
                               : at.form == node::shape::list ? "is a list"
                                                              : "is not a struct";
      refuse("column " + formats::in_quotes(path) + ' ' + what +
             ", so no field in it can be selected; select another column, or the whole list");
    }
    const std::string whole = above.empty() ? name : path + '.' + name;
    std::size_t found = at.children.size();
    for (std::size_t i = 0; i < at.children.size(); ++i) {
      if (at.children[i].name != name) continue;
      if (found != at.children.size()) {
        refuse("two columns have the name " + formats::in_quotes(whole) +
               ", so it cannot be selected; rename one of them");
      }
      found = i;
    }
    if (found == at.children.size()) {
      refuse("there is no column " + formats::in_quotes(whole) +
             (above.empty() ? "; the columns of the file are "
                            : "; the fields of " + formats::in_quotes(path) + " are ") +
             listed(at.children));
    }
    return found;
  }

  /// @param path  the path of `from`; the same again on return
  void add_fields(const node& from, const choice& chosen, levels at, std::string& path,
                  selected_node& to) {
    to.first_leaf = to_.leaves.size();
    for (std::size_t i = 0; i < from.children.size(); ++i) {
      const auto has_number = [&](const auto& field) { return field.first == i; };
      const auto found = std::ranges::find_if(chosen.fields, has_number);
      if (!chosen.is_whole && found == chosen.fields.end()) continue;
      static const choice whole{true, {}};
      const std::size_t length = path.size();
      (path += path.empty() ? "" : ".") += from.children[i].name;
      selected_node field =
          selected(from.children[i], chosen.is_whole ? whole : found->second, at, path);
      path.resize(length);
      field.key = json_key(from.children[i].name, !to.children.empty());
      to.children.push_back(std::move(field));
    }
    to.end_leaf = to_.leaves.size();
  }

  selected_node selected(const node& from, const choice& chosen, levels at, std::string& path) {
    if (!from.refusal.empty()) {
      refuse("column " + formats::in_quotes(path) + ' ' + from.refusal +
             ", which cannot be read; select other columns, or convert it to text");
    }
    selected_node to;
    to.form = from.form;
    to.is_optional = from.is_optional;
    to.present_level = at.definition = from.present_level;
    switch (from.form) {
      case node::shape::structure:
        add_fields(from, chosen, at, path, to);
        break;
      case node::shape::list:
        to.repetition_level = at.repetition = from.repetition_level;
        to.element_level = at.definition = from.element_level;
        to.first_leaf = to_.leaves.size();
        to.children.push_back(selected(from.children.front(), {true, {}}, at, path));
        to.end_leaf = to_.leaves.size();
        break;
      case node::shape::leaf:
        to.first_leaf = to_.leaves.size();
        to.end_leaf = to.first_leaf + 1;
        add_leaf(from, at, path);
        break;
    }
    return to;
  }

  void add_leaf(const node& from, levels at, const std::string& path) {
    selected_leaf leaf;
    leaf.column = from.column;
    leaf.name = path;
    leaf.type = from.type;
    leaf.kind = from.kind;
    leaf.most_definition = at.definition;
    leaf.most_repetition = at.repetition;
    for (std::size_t i = 0; i < file_.metadata.row_groups.size(); ++i) check_chunk(leaf, i);
    to_.leaves.push_back(std::move(leaf));
  }

  void check_chunk(const selected_leaf& leaf, std::size_t row_group) const {
    const detail::column_chunk& chunk = to_.chunk(row_group, leaf);
    const std::string column = "column " + formats::in_quotes(leaf.name);
    if (chunk.is_encrypted) {
      refuse(column + " is encrypted and cannot be read; decrypt the file first");
    }
    if (chunk.is_elsewhere) refuse(column + " is in another file, which cannot be read");
    const std::string place = column + " of row group " + std::to_string(row_group);
    const auto damaged = [&](const std::string& problem) {
      throw format_error(file_.path, file_.footer_offset,
                         place + ' ' + problem + "; the file is damaged");
    };
    if (!chunk.has_metadata) damaged("has no metadata in the footer");
    if (chunk.type != leaf.type) damaged("has another type than the schema says");
    const std::string codec = detail::codec_refusal(chunk.compression);
    if (!codec.empty()) {
      refuse(column + " is compressed with " + detail::name_of(chunk.compression) + ": " + codec);
    }
    if (chunk.values < 0 || chunk.uncompressed_bytes < 0 || chunk.stored_bytes < 0 ||
        chunk.data_page_offset < 0 || chunk.dictionary_page_offset < 0) {
      damaged("has a size or an offset below 0");
    }
    const std::uint64_t begin = first_page(chunk);
    const auto size = static_cast<std::uint64_t>(chunk.stored_bytes);
    if (size != 0 &&
        (begin < 4 || begin > file_.footer_offset || size > file_.footer_offset - begin)) {
      damaged("should have " + std::to_string(size) + " bytes from byte " + std::to_string(begin) +
              ", but the footer begins at byte " + std::to_string(file_.footer_offset));
    }
  }

  selected_columns& to_;
  const detail::file_contents& file_;
};

/// The sum over the selected columns of a row group, at most the largest number.
template <class Of>
std::uint64_t sum(const selected_columns& columns, std::size_t row_group, Of of) {
  std::uint64_t total = 0;
  for (const selected_leaf& leaf : columns.leaves) {
    const std::int64_t each = of(columns.chunk(row_group, leaf));
    total += std::min(static_cast<std::uint64_t>(each),
                      std::numeric_limits<std::uint64_t>::max() - total);
  }
  return total;
}

}  // namespace

std::uint64_t detail::first_page(const column_chunk& chunk) noexcept {
  // If there is no dictionary, some writers give its page an offset after the data pages. If there
  // are no data pages, some writers give them the offset 0.
  const bool has_dictionary =
      chunk.dictionary_page_offset > 0 &&
      (chunk.dictionary_page_offset < chunk.data_page_offset || chunk.data_page_offset == 0);
  return static_cast<std::uint64_t>(has_dictionary ? chunk.dictionary_page_offset
                                                   : chunk.data_page_offset);
}

selection::selection(std::shared_ptr<const parquet::file> file,
                     std::span<const column_path> paths) {
  auto columns = std::make_shared<selected_columns>();
  columns->file = std::move(file);
  selector(*columns).select(paths);
  columns_ = std::move(columns);
}

const parquet::file& selection::file() const noexcept {
  return *columns_->file;
}

std::uint64_t selection::value_count(std::size_t row_group) const {
  return sum(*columns_, row_group, [](const auto& chunk) { return chunk.values; });
}

std::uint64_t selection::text_bytes(std::size_t row_group) const {
  return sum(*columns_, row_group, [](const auto& chunk) { return chunk.uncompressed_bytes; });
}

std::uint64_t selection::file_offset(std::size_t row_group) const {
  std::uint64_t first = columns_->contents().footer_offset;
  for (const selected_leaf& leaf : columns_->leaves) {
    first = std::min(first, detail::first_page(columns_->chunk(row_group, leaf)));
  }
  return first;
}

std::vector<row_cut> selection::cut_rows(std::size_t row_group) const {
  std::vector<row_cut> cuts = {{}};
  if (columns_->leaves.size() != 1 || columns_->leaves.front().most_repetition != 0) return cuts;
  const std::uint64_t all = columns_->contents().row_groups[row_group].rows;
  detail::page_reader pages(*columns_, columns_->leaves.front(), row_group);
  pages.read_little();
  std::uint64_t row = 0;
  while (const detail::page_header* page = pages.next()) {
    if (page->is_data()) {
      if (row != cuts.back().row && row < all) cuts.push_back({row, pages.where().offset});
      row += static_cast<std::uint64_t>(page->values);
    }
    pages.skip();
  }
  return cuts;
}

}  // namespace millrace::parquet
