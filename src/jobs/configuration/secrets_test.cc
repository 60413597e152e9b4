#include "jobs/configuration/secrets.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace msprobe {
namespace {

TEST(Secrets, ByNameAndByShape) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"WANDB_API_KEY", "x"},
                                                        {"wandb-api-key", "abc"},
                                                        {"db_password", "1"},
                                                        {"proxy", "http://user:pw@host:80/"},
                                                        {"x", "hf_abcdefghijklmnopqrstuvwx"},
                                                        {"note", "use sk-abcdefghijklmnopqrstuv please"},
                                                        {"hf_token", "9Zq1xY72bcD03kfLmn45PQ"},
                                                        {"awsSecretAccess", "a"}}) {
    EXPECT_TRUE(IsSecret(name, value)) << name;
  }
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"pad_token", "<pad>"},
                                                        {"eos_token_id", "151643"},
                                                        {"num_key_value_heads", "8"},
                                                        {"tokenizer", "GPT2BPETokenizer"},
                                                        {"data_path", "/data/a_text_document_0123456789ABC"},
                                                        {"max_tokens", "8192"},
                                                        {"url", "http://host:80/a@b"}}) {
    EXPECT_FALSE(IsSecret(name, value)) << name;
  }
  EXPECT_TRUE(IsTrainingVariable("HCCL_DETERMINISTIC"));
  EXPECT_FALSE(IsTrainingVariable("HOME"));
}

}  // namespace
}  // namespace msprobe
