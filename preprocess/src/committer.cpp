// SPDX-License-Identifier: Apache-2.0
#include "committer.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::preprocess {

committer::committer(std::span<const input_file> inputs,
                     const std::vector<std::filesystem::path>& prefixes, formats::dtype type,
                     bad_record_policy policy)
    : inputs_(inputs), policy_(policy) {
  for (const auto& prefix : prefixes) writers_.emplace_back(prefix, type);
}

std::vector<std::string> committer::commit(const encoded_block& block) {
  if (block.input != input_) {
    input_ = block.input;
    lines_before_ = 0;
  }
  std::vector<std::string> notes;
  for (const block_fault& fault : block.faults) notes.push_back(describe(block, fault));
  if (policy_ == bad_record_policy::fail && !notes.empty()) throw bad_record_error(notes.front());

  std::size_t key = 0;
  for (dataset_writer& writer : writers_) {
    const encoded_column& column = block.columns[key++];
    writer.append({column.ids.data(), column.ids_bytes}, column.lengths, column.document_ends);
  }
  counts_ += block.counts;
  bytes_ += block.size_bytes;
  lines_before_ += block.counts.lines;
  limit(notes);
  return notes;
}

// The first notes of the run stay, and one line says that there would be more. What is told does
// not depend on where blocks end.
void committer::limit(std::vector<std::string>& notes) {
  notes.resize(std::min(notes.size(), most_notes - notes_));
  notes_ += notes.size();
  if (!told_of_more_ && counts_.bad_record_total() > std::int64_t{most_notes}) {
    notes.emplace_back("further bad records are only counted");
    told_of_more_ = true;
  }
}

void committer::finish() {
  for (dataset_writer& writer : writers_) writer.finish();
  for (dataset_writer& writer : writers_) writer.publish();
}

std::string committer::describe(const encoded_block& block, const block_fault& fault) const {
  return fmt::format("{}:{} (byte {}): {}", inputs_[block.input].path.string(),
                     lines_before_ + fault.line + 1, block.offset_bytes + fault.fault.offset_bytes,
                     fault.fault.what);
}

}  // namespace millrace::preprocess
