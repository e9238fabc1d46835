package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"slices"
	"strings"
)

// listing is the exported API of a package, a line for everything that others can name:
// its name, what it is, and its type. Names of parameters are left out.
func listing(name string, pkg *types.Package) []string {
	l := lister{name: name, pkg: pkg}
	for _, id := range pkg.Scope().Names() {
		if o := pkg.Scope().Lookup(id); o.Exported() {
			l.object(o)
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

type lister struct {
	name  string
	pkg   *types.Package
	lines []string
}

func (l *lister) add(id, format string, a ...any) {
	l.lines = append(l.lines, l.name+"."+id+" "+fmt.Sprintf(format, a...))
}

func (l *lister) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		l.add(o.Name(), "const %s = %s", l.text(o.Type()), o.Val().ExactString())
	case *types.Var:
		l.add(o.Name(), "var %s", l.text(o.Type()))
	case *types.Func:
		l.add(o.Name(), "%s", l.signature(o))
	case *types.TypeName:
		if o.IsAlias() {
			l.add(o.Name(), "type = %s", l.text(types.Unalias(o.Type())))
			return
		}
		l.named(o.Name(), o.Type().(*types.Named))
	}
}

func (l *lister) named(id string, t *types.Named) {
	params := l.params(t.TypeParams())
	switch u := t.Underlying().(type) {
	case *types.Struct:
		l.add(id, "type%s struct", params)
		for f := range u.Fields() {
			if f.Exported() {
				l.add(id+"."+f.Name(), "field %s", l.text(f.Type()))
			}
		}
	case *types.Interface:
		l.add(id, "type%s %s", params, l.text(u))
		return // its methods are in it
	default:
		l.add(id, "type%s %s", params, l.text(u))
	}
	byValue := types.NewMethodSet(t)
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if f, ok := m.Obj().(*types.Func); ok && f.Exported() {
			receiver := "*" + id
			if byValue.Lookup(f.Pkg(), f.Name()) != nil {
				receiver = id
			}
			l.add(id+"."+f.Name(), "method (%s) %s", receiver, l.signature(f))
		}
	}
}

// signature is a function's, with its type parameters.
func (l *lister) signature(f *types.Func) string {
	s := f.Signature()
	plain := types.NewSignatureType(nil, nil, nil, s.Params(), s.Results(), s.Variadic())
	return "func" + l.params(s.TypeParams()) + strings.TrimPrefix(l.text(plain), "func")
}

func (l *lister) params(list *types.TypeParamList) string {
	var all []string
	for p := range list.TypeParams() {
		all = append(all, p.Obj().Name()+" "+l.text(p.Constraint()))
	}
	if all == nil {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// text writes a type, with other packages' names before theirs.
func (l *lister) text(t types.Type) string {
	written := types.TypeString(t, func(p *types.Package) string {
		if p == l.pkg {
			return ""
		}
		return p.Name()
	})
	expr, err := parser.ParseExpr(written)
	if err != nil {
		return written
	}
	ast.Inspect(expr, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncType); ok {
			unname(f.Params)
			unname(f.Results)
		}
		return true
	})
	return types.ExprString(expr)
}

// unname drops the names of parameters: they may change.
func unname(list *ast.FieldList) {
	if list == nil {
		return
	}
	for _, f := range list.List {
		f.Names = nil // each has a field of its own
	}
}
