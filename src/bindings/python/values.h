// Values of a call as lines of a record.
#pragma once

#include <utility>
#include <vector>

#include "bindings/python/py.h"
#include "capture/record.h"

namespace msprobe {

/// Tensors, and copies whose values are shown in their place.
using StandIns = std::vector<std::pair<Ref, Ref>>;
/// While it lives RecordValue() on this thread shows them.
class ShownAs {
 public:
  explicit ShownAs(const StandIns& stand_ins);
  ~ShownAs();
  ShownAs(const ShownAs&) = delete;
  ShownAs& operator=(const ShownAs&) = delete;
};

/// Appends `value`; never raises: what cannot be read becomes null and is counted. `key` is the name under which a dict
/// or keyword holds the value, or null: "dtype" and "device" decide how some values are shown.
void RecordValue(Record* record, PyObject* value, PyObject* key = nullptr, int depth = 0);

/// The items of a tuple as a list; another object as a list of one.
void RecordAsList(Record* record, PyObject* value);

/// A dict of keyword arguments as an object; null as an empty one.
void RecordKeywords(Record* record, PyObject* kwargs);

/// Key of a dict as text; `index` among the keys tells apart those of which only the class is shown.
void RecordKey(Record* record, PyObject* key, size_t index = 0);

/// The first tensor found by going into first items of lists and tuples and first tensors of dicts; borrowed, or null.
PyObject* FirstTensor(PyObject* value);

}  // namespace msprobe
