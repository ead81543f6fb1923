package source

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/parquet-go/parquet-go"
)

// valueText appends a value to dst in the notation of its type.
type valueText func(dst []byte, v parquet.Value) []byte

// nameText writes numbers that are names (profile.AppendNumber).
func nameText(text valueText) valueText {
	var number []byte
	return func(dst []byte, v parquet.Value) []byte {
		number = text(number[:0], v)
		return profile.AppendNumber(dst, number)
	}
}

func physicalText(kind parquet.Kind) valueText {
	switch kind {
	case parquet.Boolean:
		return func(dst []byte, v parquet.Value) []byte { return strconv.AppendBool(dst, v.Boolean()) }
	case parquet.Int32:
		return func(dst []byte, v parquet.Value) []byte { return strconv.AppendInt(dst, int64(v.Int32()), 10) }
	case parquet.Int64:
		return func(dst []byte, v parquet.Value) []byte { return strconv.AppendInt(dst, v.Int64(), 10) }
	case parquet.Int96:
		return func(dst []byte, v parquet.Value) []byte {
			t := v.Int96()
			return appendInt96(dst, uint64(t[0])|uint64(t[1])<<32, t[2])
		}
	case parquet.Float:
		return func(dst []byte, v parquet.Value) []byte { return appendFloat(dst, float64(v.Float()), 32) }
	case parquet.Double:
		return func(dst []byte, v parquet.Value) []byte { return appendFloat(dst, v.Double(), 64) }
	case parquet.FixedLenByteArray:
		return func(dst []byte, v parquet.Value) []byte { return append(dst, v.ByteArray()...) }
	}
	return nil
}

func halfText(dst []byte, v parquet.Value) []byte {
	return appendFloat(dst, half(binary.LittleEndian.Uint16(v.ByteArray())), 32)
}

// intervalText writes months, days and milliseconds as Arrow's library does its own.
func intervalText(dst []byte, v parquet.Value) []byte {
	b, n := v.ByteArray(), binary.LittleEndian.Uint32
	return fmt.Appendf(dst, `{"months":%d,"days":%d,"nanoseconds":%d}`, n(b), n(b[4:]), int64(n(b[8:]))*1e6)
}

func unsignedText(kind parquet.Kind) valueText {
	if kind == parquet.Int32 {
		return func(dst []byte, v parquet.Value) []byte { return strconv.AppendUint(dst, uint64(v.Uint32()), 10) }
	}
	return func(dst []byte, v parquet.Value) []byte { return strconv.AppendUint(dst, v.Uint64(), 10) }
}

func decimalText(kind parquet.Kind, scale int) valueText {
	return func(dst []byte, v parquet.Value) []byte {
		switch kind {
		case parquet.Int32:
			return appendDecimal(dst, big.NewInt(int64(v.Int32())), scale)
		case parquet.Int64:
			return appendDecimal(dst, big.NewInt(v.Int64()), scale)
		}
		return appendDecimal(dst, twosComplement(v.ByteArray()), scale)
	}
}

func timeText(kind parquet.Kind, unit time.Duration) valueText {
	return func(dst []byte, v parquet.Value) []byte {
		if kind == parquet.Int32 {
			return appendTime(dst, int64(v.Int32()), unit)
		}
		return appendTime(dst, v.Int64(), unit)
	}
}
