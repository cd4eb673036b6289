# SPDX-License-Identifier: Apache-2.0
# Models of the Hugging Face hub are not downloaded, but a model in the local cache is found.
echo '{"text": "a"}' > in.jsonl
unset HF_HUB_CACHE HUGGINGFACE_HUB_CACHE XDG_CACHE_HOME
export HF_HOME=cache HOME=home
fails() {
  local status=0
  preprocess_data --input in.jsonl --output-prefix out "$@" 2> log || status=$?
  echo "= $status: $(head -n 1 log)"
}
llama=(--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B)
fails "${llama[@]}"
model=cache/hub/models--meta-llama--Llama-3.1-8B
mkdir -p $model/{refs,snapshots/{aaa,bbb}}
echo '{}' | tee $model/snapshots/{aaa,bbb}/tokenizer.json > one
fails "${llama[@]}"
printf aaa > $model/refs/main
fails "${llama[@]}"
HF_HOME= fails "${llama[@]}"
mkdir -p home/.cache/huggingface
mv cache/hub home/.cache/huggingface/hub
HF_HOME= fails "${llama[@]}"
mv home/.cache/huggingface/hub elsewhere
HF_HUB_CACHE=elsewhere fails "${llama[@]}"
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model gpt2
# These names are not valid on the hub.
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model a/b/c
fails --tokenizer-type HuggingFaceTokenizer --tokenizer-model ./gpt2
