package gaterule

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"strings"
	"time"
)

// shortest is the shortest deadline that a test may set on a real clock. A machine that
// is busy with something else may stop a process for seconds.
const shortest = 10 * time.Second

// look reports what in a file breaks the rule. Benchmarks are left out: the gate does not
// run them.
func look(file *ast.File, virtual map[ast.Node]bool, constants map[string]ast.Expr, report func(at token.Pos, what string)) {
	var decl string
	measured := map[string]bool{}  // variables of the function that hold a measured duration
	local := map[string]ast.Expr{} // its parameters, and variables given one value; nil: not known
	lookUp := func(name string) ast.Expr {
		if e, ok := local[name]; ok {
			return e
		}
		return constants[name]
	}
	give := func(id *ast.Ident, value ast.Expr) {
		if _, again := local[id.Name]; again {
			value = nil
		}
		local[id.Name] = value
		if value != nil && measures(value, measured) {
			measured[id.Name] = true
		}
	}
	last := ""
	ast.Walk(visitor{virtual: virtual, decl: &decl, visit: func(n ast.Node, in bool) {
		if decl != last {
			last = decl
			clear(measured)
			clear(local)
		}
		if in || strings.HasPrefix(decl, "Benchmark") {
			return
		}
		short := func(e ast.Expr) bool {
			d, ok := duration(e, lookUp)
			return ok && d > 0 && d < shortest
		}
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				local[name.Name] = nil
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					give(name, n.Values[i])
				}
			}
		case *ast.CallExpr:
			fun, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
			switch {
			case !ok:
			case named(fun, "time", "Sleep", "After", "Tick", "NewTicker"):
				report(n.Pos(), "time."+fun.Sel.Name+" on a real clock")
			case named(fun, "time", "NewTimer", "AfterFunc") && short(n.Args[0]),
				named(fun, "context", "WithTimeout", "WithTimeoutCause") && len(n.Args) > 1 && short(n.Args[1]),
				named(fun, "context", "WithDeadline", "WithDeadlineCause") && len(n.Args) > 1 && short(fromNow(n.Args[1])),
				named(fun, "net", "DialTimeout") && len(n.Args) > 2 && short(n.Args[2]),
				strings.HasSuffix(fun.Sel.Name, "Deadline") && strings.HasPrefix(fun.Sel.Name, "Set") && len(n.Args) == 1 && short(fromNow(n.Args[0])):
				report(n.Pos(), fmt.Sprintf("%s shorter than %v on a real clock", fun.Sel.Name, shortest))
			}
		case *ast.CompositeLit:
			if !named(n.Type, "http", "Client") && !named(n.Type, "net", "Dialer") {
				return
			}
			for _, elt := range n.Elts {
				kv, ok := elt.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Timeout" && short(kv.Value) {
					report(kv.Pos(), fmt.Sprintf("a Timeout shorter than %v on a real clock", shortest))
				}
			}
		case *ast.AssignStmt:
			for i, lhs := range n.Lhs {
				if id, ok := lhs.(*ast.Ident); ok {
					if len(n.Rhs) == len(n.Lhs) {
						give(id, n.Rhs[i])
					} else {
						give(id, nil)
					}
				}
			}
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LSS, token.GTR, token.LEQ, token.GEQ:
				if measures(n.X, measured) || measures(n.Y, measured) {
					report(n.Pos(), "a bound on a duration that a real clock measured")
				}
			}
		}
	}}, file)
}

// measures reports whether a duration's value comes from a clock: a call of time.Since,
// or a variable that was given one.
func measures(e ast.Expr, measured map[string]bool) (is bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			is = is || named(n.Fun, "time", "Since", "Until") || subtractsFromNow(n)
		case *ast.Ident:
			is = is || measured[n.Name]
		}
		return !is
	})
	return is
}

// subtractsFromNow reports whether a call is time.Now().Sub(t).
func subtractsFromNow(call *ast.CallExpr) bool {
	sub, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sub.Sel.Name != "Sub" {
		return false
	}
	now, ok := sub.X.(*ast.CallExpr)
	return ok && named(now.Fun, "time", "Now")
}

// fromNow returns d of time.Now().Add(d), and otherwise nothing that is a duration.
func fromNow(e ast.Expr) ast.Expr {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return e
	}
	add, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || add.Sel.Name != "Add" {
		return e
	}
	if now, ok := add.X.(*ast.CallExpr); ok && named(now.Fun, "time", "Now") {
		return call.Args[0]
	}
	return e
}

// constantsOf returns the expressions of a package's own constants and variables, by name.
func constantsOf(pkg files) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	for _, file := range pkg {
		for _, d := range file.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST && d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				if spec := spec.(*ast.ValueSpec); len(spec.Values) == len(spec.Names) {
					for i, name := range spec.Names {
						found[name.Name] = spec.Values[i]
					}
				}
			}
		}
	}
	return found
}

var units = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// duration returns the value of a constant expression.
func duration(e ast.Expr, lookUp func(string) ast.Expr) (time.Duration, bool) {
	v := value(e, lookUp, 8)
	if v.Kind() == constant.Unknown {
		return 0, false
	}
	f, _ := constant.Float64Val(v)
	return time.Duration(f), true
}

// value evaluates numbers, the units of package time, named constants, sums and products.
func value(e ast.Expr, lookUp func(string) ast.Expr, depth int) constant.Value {
	unknown := constant.MakeUnknown()
	if depth == 0 {
		return unknown
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.BasicLit:
		if e.Kind == token.INT || e.Kind == token.FLOAT {
			return constant.ToFloat(constant.MakeFromLiteral(e.Value, e.Kind, 0))
		}
	case *ast.Ident:
		if c := lookUp(e.Name); c != nil {
			return value(c, lookUp, depth-1)
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "time" && units[e.Sel.Name] != 0 {
			return constant.ToFloat(constant.MakeInt64(int64(units[e.Sel.Name])))
		}
	case *ast.UnaryExpr:
		if x := value(e.X, lookUp, depth-1); x.Kind() != constant.Unknown && e.Op == token.SUB {
			return constant.UnaryOp(token.SUB, x, 0)
		}
	case *ast.CallExpr: // time.Duration(n)
		if named(e.Fun, "time", "Duration") && len(e.Args) == 1 {
			return value(e.Args[0], lookUp, depth-1)
		}
	case *ast.BinaryExpr:
		x, y := value(e.X, lookUp, depth-1), value(e.Y, lookUp, depth-1)
		if x.Kind() == constant.Unknown || y.Kind() == constant.Unknown {
			return unknown
		}
		switch e.Op {
		case token.MUL, token.ADD, token.SUB:
			return constant.BinaryOp(x, e.Op, y)
		case token.QUO:
			if constant.Sign(y) != 0 {
				return constant.BinaryOp(x, e.Op, y)
			}
		}
	}
	return unknown
}
