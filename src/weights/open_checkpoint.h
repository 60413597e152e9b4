// Opens a checkpoint of whatever format.
#pragma once

#include <string>

#include "weights/checkpoint.h"

namespace msprobe {

/// A file or a directory of: safetensors and torch files (one, or many with an index of Hugging Face), checkpoints of
/// torch.distributed, Megatron and MindSpeed, DeepSpeed (ZeRO), MindSpore .ckpt, .npz and .npy. kBadInput with what is
/// wrong and what to do. No code of a file is executed.
StatusOr<Checkpoint> OpenCheckpoint(const std::string& path);

}  // namespace msprobe
