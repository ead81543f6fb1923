package source

import (
	"strconv"
	"time"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/linkforge/bulk/pipeline/profile"
)

// arrowValue returns a function for the cell of the i-th value of an array. The value must not
// be null; in a dictionary, in runs or in an array of nulls it may be, and the cell then, too.
// A cell is valid until the next one.
func arrowValue(a arrow.Array) func(i int) ([]byte, bool) {
	switch a := a.(type) {
	case *array.String: // most columns are: this is faster than the next case
		return func(i int) ([]byte, bool) {
			s := a.Value(i)
			return unsafe.Slice(unsafe.StringData(s), len(s)), true
		}
	case interface{ Value(int) string }:
		return stringValue(a.Value)
	case interface{ Value(int) []byte }:
		return func(i int) ([]byte, bool) { return a.Value(i), true }
	case *array.Dictionary:
		return indirect(a.Dictionary(), a.GetValueIndex)
	case *array.RunEndEncoded:
		return indirect(a.Values(), a.GetPhysicalIndex)
	case *array.Null:
		return func(int) ([]byte, bool) { return nil, false }
	case array.ExtensionArray:
		if a.ExtensionType().ExtensionName() == "arrow.uuid" {
			if s, ok := a.Storage().(*array.FixedSizeBinary); ok {
				return uuidValue(s)
			}
		}
		return arrowValue(a.Storage())
	}
	for _, text := range []func([]byte, int) []byte{arrowNumber(a), arrowTime(a)} {
		if text != nil {
			return written(text)
		}
	}
	return stringValue(a.ValueStr)
}

// indirect takes the i-th value from values[at(i)].
func indirect(values arrow.Array, at func(i int) int) func(i int) ([]byte, bool) {
	value := arrowValue(values)
	return func(i int) ([]byte, bool) {
		k := at(i)
		if values.IsNull(k) {
			return nil, false
		}
		return value(k)
	}
}

func stringValue(value func(int) string) func(int) ([]byte, bool) {
	return func(i int) ([]byte, bool) {
		s := value(i)
		return unsafe.Slice(unsafe.StringData(s), len(s)), true
	}
}

func uuidValue(a *array.FixedSizeBinary) func(int) ([]byte, bool) {
	return written(func(dst []byte, i int) []byte { return appendUUID(dst, a.Value(i)) })
}

// written makes cells with a function that appends the i-th value.
func written(text func(dst []byte, i int) []byte) func(int) ([]byte, bool) {
	var buf []byte
	return func(i int) ([]byte, bool) {
		buf = text(buf[:0], i)
		return buf, true
	}
}

// isFraction reports whether the values of a type are numbers that may have a fraction.
func isFraction(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return isFraction(t.ValueType)
	case *arrow.RunEndEncodedType:
		return isFraction(t.Encoded())
	}
	return arrow.IsFloating(t.ID()) || arrow.IsDecimal(t.ID())
}

// nameValue writes numbers that are names (profile.AppendNumber).
func nameValue(value func(i int) ([]byte, bool)) func(i int) ([]byte, bool) {
	var buf []byte
	return func(i int) ([]byte, bool) {
		number, ok := value(i)
		if !ok {
			return nil, false
		}
		buf = profile.AppendNumber(buf[:0], number)
		return buf, true
	}
}

// arrowNumber returns nil for numbers that the library writes as we do. It does so for all
// integers, but allocates memory for each.
func arrowNumber(a arrow.Array) func(dst []byte, i int) []byte {
	switch a := a.(type) {
	case *array.Int32:
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(a.Value(i)), 10) }
	case *array.Int64:
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, a.Value(i), 10) }
	case *array.Uint64:
		return func(dst []byte, i int) []byte { return strconv.AppendUint(dst, a.Value(i), 10) }
	case *array.Float16:
		return func(dst []byte, i int) []byte { return appendFloat(dst, half(a.Value(i).Uint16()), 32) }
	case *array.Float32:
		return func(dst []byte, i int) []byte { return appendFloat(dst, float64(a.Value(i)), 32) }
	case *array.Float64:
		return func(dst []byte, i int) []byte { return appendFloat(dst, a.Value(i), 64) }
	case *array.Decimal128:
		scale := int(a.DataType().(*arrow.Decimal128Type).Scale)
		return func(dst []byte, i int) []byte { return appendDecimal(dst, a.Value(i).BigInt(), scale) }
	case *array.Decimal256:
		scale := int(a.DataType().(*arrow.Decimal256Type).Scale)
		return func(dst []byte, i int) []byte { return appendDecimal(dst, a.Value(i).BigInt(), scale) }
	}
	return nil
}

func arrowTime(a arrow.Array) func(dst []byte, i int) []byte {
	switch a := a.(type) {
	case *array.Date32:
		return func(dst []byte, i int) []byte { return appendDate(dst, int64(a.Value(i))) }
	case *array.Date64:
		return func(dst []byte, i int) []byte {
			const day = 24 * 60 * 60 * 1000
			v := int64(a.Value(i))
			if v%day != 0 { // some writers keep the time of day
				return appendLocal(dst, sinceEpoch(v, time.Millisecond))
			}
			return appendDate(dst, v/day)
		}
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		unit, write := t.Unit.Multiplier(), appendTimestamp
		if t.TimeZone == "" {
			write = appendLocal
		}
		return func(dst []byte, i int) []byte { return write(dst, sinceEpoch(int64(a.Value(i)), unit)) }
	case *array.Time32:
		unit := a.DataType().(*arrow.Time32Type).Unit.Multiplier()
		return func(dst []byte, i int) []byte { return appendTime(dst, int64(a.Value(i)), unit) }
	case *array.Time64:
		unit := a.DataType().(*arrow.Time64Type).Unit.Multiplier()
		return func(dst []byte, i int) []byte { return appendTime(dst, int64(a.Value(i)), unit) }
	}
	return nil
}
