// The formats of checkpoints, for checkpoint.cc, and what their readers have in common.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weights/checkpoint.h"

namespace msprobe {

/// Each reads `path` into `out`, whose path is set.
Status ReadHuggingFace(const std::string& directory, Checkpoint* out);
Status ReadTensorFile(const std::string& path, Checkpoint* out);
Status ReadDistributed(const std::string& directory, Checkpoint* out);
Status ReadMegatron(const std::string& directory, Checkpoint* out);
Status ReadZero(const std::string& directory, Checkpoint* out);
Status ReadMindSpore(const std::string& path, Checkpoint* out);
Status ReadNpz(const std::string& path, Checkpoint* out);

/// Directories step_N/rank_R of safetensors, .npz or .npy files; names begin with "step_0/rank_0/".
Status ReadSteps(const std::string& directory, Checkpoint* out);
bool HasSteps(const std::string& directory);
/// One step of these.
Status ReadStep(const std::string& directory, Checkpoint* out);
bool IsStep(const std::string& directory);

bool IsMegatron(const std::string& directory);
bool IsZero(const std::string& directory);
/// The directory of the iteration that a directory of several names as its last; else itself.
StatusOr<std::string> LatestIteration(const std::string& directory);

/// The value of a key of a dict, or the attribute of an object; null when there is none.
const PtValue* PtMember(const PtValue& value, std::string_view key);
/// Opens a file of torch.save() with objects shown; it lives as long as the checkpoint.
StatusOr<const PtValue*> OpenTorch(int file, Checkpoint* out);
/// The dict of an object that is one, or `value` itself if it is a dict; else null.
const PtValue* PtDict(const PtValue& value);
/// All tensors in `value`, with the keys that lead to them. Objects that are not made are noted; kBadInput where one
/// is made of tensors, for what it makes of them is not known.
Status ListTensors(const PtValue& value, const std::string& prefix, int file, Checkpoint* checkpoint,
                   std::vector<WeightTensor>* out);
/// The same of an optimizer: its states are left out with a note where one of them is hidden.
void ListStates(const PtValue& value, const std::string& prefix, int file, Checkpoint* out);
/// The numbers in the groups and states of an optimizer, or in a scheduler: "param_groups.0.lr".
void ListSettings(const PtValue& value, const std::string& prefix, int file, Checkpoint* out);
/// A number under a name; the first of several with one name counts.
void AddSetting(const std::string& name, double value, int file, Checkpoint* out);
/// The notes on what was left unread, once all is read: objects that are not made, and what is no tensor.
void NoteUnread(Checkpoint* out);
int64_t PtInt(const PtValue* value, int64_t otherwise);

/// Objects of the metadata that hold states ("param_state" of dp_zero_gather_scatter), by name, with their file.
using StateObjects = std::map<std::string, std::pair<const PtValue*, int>>;
/// The distributed optimizer where torch.distributed keeps it as each rank has it. Cuts the buckets of dp_reshardable,
/// or those of `objects`, into states of the weights, as "exp_avg.NAME": the weights of each rank are known from the
/// arguments. What does not round to the weights stays as it is, with a note.
void CutBuckets(const StateObjects& objects, Checkpoint* out);

/// What config.json beside the weights says.
void ReadConfig(const std::string& directory, ModelFacts* facts);
/// Keeps the arguments of a training, and what they say of the model; null does nothing.
void TakeArguments(const PtValue* args, int file, Checkpoint* out);
/// What Megatron's arguments say.
void ReadArguments(const PtValue& args, ModelFacts* facts);

}  // namespace msprobe
