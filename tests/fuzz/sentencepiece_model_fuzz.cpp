// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "sentencepiece/model_file.hpp"
#include "sentencepiece/sentencepiece_decoder.hpp"
#include "sentencepiece/sentencepiece_tokenizer.hpp"

/// If a model is accepted, it can encode and decode. If it is refused, the error offset is within
/// the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::tokenizer;
  const auto model = detail::parse_sentencepiece_model({reinterpret_cast<const char*>(data), size});
  const bool bpe = model.type == detail::model_type::bpe;
  const auto engine = bpe ? detail::make_sentencepiece_bpe_engine(model, {4096})
                          : detail::make_sentencepiece_unigram_engine(model, {4096});
  const auto encoder = engine->make_encoder(4096);
  id_buffer ids;
  for (const std::string_view text :
       {std::string_view(
            "  The the\n\tsmall  words, \xE2\x96\x81\xE3\x81\x8B\xE3\x82\x99 A\xCC\x80 "
            "<x>New York aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        std::string_view("\0 \xF0\x9F\x98\x80", 6)}) {
    if (encoder->encode({text, true}, ids)) std::abort();
  }
  for (const std::int32_t id : ids.ids()) {
    if (id < 0 || static_cast<std::size_t>(id) >= model.pieces.size()) std::abort();
  }
  const std::vector<std::int64_t> wide(ids.ids().begin(), ids.ids().end());
  (void)detail::sentencepiece_decoder(model).decode(wide);
  return 0;
} catch (const millrace::format_error& e) {
  if (e.offset() > size) std::abort();
  return 0;
} catch (const millrace::config_error&) {
  return 0;
}
