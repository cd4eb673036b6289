// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/quarantine.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/run/source_documents.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/json.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/loader/detail/verify/verify_report.hpp>

namespace millrace::loader {

namespace detail {

/// Returns an edit of the kind `block` for the documents that have a token in the faulty block.
MILLRACE_INLINE dataset::edit block_documents(const dataset::source_documents& documents,
                                              const finding& found, std::int64_t since) {
  const auto item = static_cast<std::uint64_t>(formats::size_bytes(documents.type()));
  const auto first = static_cast<std::int64_t>(found.first_byte / item);
  const auto last = static_cast<std::int64_t>((found.last_byte - 1) / item);
  const auto document_of = [&](std::int64_t token) {
    return documents.document_of(documents.sequence_of(token));
  };
  dataset::edit edit;
  edit.kind = dataset::edit_kind::block;
  edit.unit = dataset::edit_unit::documents;
  edit.first = document_of(first);
  edit.last = document_of(last) + 1;
  edit.since = since;
  edit.source = documents.prefix().string();
  edit.why = found.what;
  return edit;
}

/// Sorts edits and merges those that overlap or touch, so that each document is in one edit.
MILLRACE_INLINE void merge(std::vector<dataset::edit>& edits) {
  std::ranges::sort(edits, [](const dataset::edit& a, const dataset::edit& b) {
    return std::tie(a.source, a.first, a.last) < std::tie(b.source, b.first, b.last);
  });
  std::vector<dataset::edit> merged;
  for (dataset::edit& edit : edits) {
    if (!merged.empty() && merged.back().source == edit.source &&
        edit.first <= merged.back().last) {
      merged.back().last = std::max(merged.back().last, edit.last);
      merged.back().why += "; " + edit.why;
    } else {
      merged.push_back(std::move(edit));
    }
  }
  edits = std::move(merged);
}

}  // namespace detail

MILLRACE_INLINE quarantine quarantine_of(std::span<const finding> findings, std::int64_t since) {
  quarantine result;
  std::map<std::filesystem::path, std::unique_ptr<dataset::source_documents>> opened;
  for (const finding& found : findings) {
    if (!found.of_bin || found.block < 0 || found.last_byte <= found.first_byte) {
      result.not_edited.push_back(found.path.string() + ": " + found.what);
      continue;
    }
    auto& documents = opened[found.path];
    if (!documents) {
      std::filesystem::path prefix = found.path;
      documents = std::make_unique<dataset::source_documents>(prefix.replace_extension());
    }
    result.edits.push_back(detail::block_documents(*documents, found, since));
  }
  detail::merge(result.edits);
  return result;
}

MILLRACE_INLINE void write_quarantine(const std::filesystem::path& path,
                                      std::span<const dataset::edit> edits) {
  dataset::run_state state;
  state.edits.assign(edits.begin(), edits.end());
  // Writes only the edits, because the rest of the state is not known here.
  const formats::json_value whole = formats::parse_json(dataset::write_state(state));
  const std::string text =
      formats::write_json(formats::json_object{{"millrace_state", std::int64_t{1}},
                                               {"edits", *whole.find("edits")}}) +
      "\n";
  io::atomic_file file(path);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

MILLRACE_INLINE std::vector<dataset::edit> read_quarantine(const std::filesystem::path& path) {
  const io::file_mapping file(path);
  const auto bytes = file.bytes();
  try {
    return dataset::parse_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).edits;
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

}  // namespace millrace::loader
