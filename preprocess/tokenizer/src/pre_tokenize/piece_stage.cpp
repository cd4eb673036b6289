// SPDX-License-Identifier: Apache-2.0
#include "pre_tokenize/piece_stage.hpp"

#include <cstddef>
#include <utility>

namespace millrace::tokenizer::detail {
namespace {

class staged_pre_tokenizer final : public pre_tokenizer {
 public:
  explicit staged_pre_tokenizer(std::vector<stage_pointer> stages) : stages_(std::move(stages)) {}

  void split(const section& part, piece_list& out) const override {
    out.clear();
    if (part.text.empty()) return;
    if (stages_.empty()) return out.add(part.text);
    stage_scratch scratch;
    stages_.front()->cut(part, scratch, out);
    piece_list before;
    for (std::size_t i = 1; i < stages_.size(); ++i) {
      std::swap(before, out);
      out.clear();
      std::size_t begin = 0;
      for (const std::size_t end : before.ends) {
        const std::string_view piece = std::string_view(before.text).substr(begin, end - begin);
        stages_[i]->cut({piece, false}, scratch, out);
        begin = end;
      }
    }
  }

  void split_aligned(const section& part, aligned_pieces& out) const override {
    out.clear();
    if (part.text.empty()) return;
    const aligned_text whole(part.text);
    if (stages_.empty()) return out.add(whole, 0, part.text.size());
    stage_scratch scratch;
    stages_.front()->cut_aligned(whole, part.at_start, scratch, out);
    aligned_pieces before;
    aligned_text piece;
    for (std::size_t i = 1; i < stages_.size(); ++i) {
      std::swap(before, out);
      out.clear();
      std::size_t begin = 0;
      for (const std::size_t end : before.ends) {
        piece.clear();
        piece.append(before.all, begin, end);
        stages_[i]->cut_aligned(piece, false, scratch, out);
        begin = end;
      }
    }
  }

 private:
  std::vector<stage_pointer> stages_;
};

}  // namespace

std::unique_ptr<const pre_tokenizer> make_staged_pre_tokenizer(std::vector<stage_pointer> stages) {
  return std::make_unique<staged_pre_tokenizer>(std::move(stages));
}

}  // namespace millrace::tokenizer::detail
